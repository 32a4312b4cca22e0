package compiler

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/spec/checkpoint"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// TestMergeLoRA: with an adapter in their weights, compiled models compute what
// transformers does with the adapter.
func TestMergeLoRA(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	for _, name := range irtest.Sample(t, 2, adaptedModels(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mergedLikeTransformers(t, name, loraModels+name)
		})
	}
}

// TestMergeLoRAIntoGGUF does the same with a GGUF file, whose matrices have other names
// and orders of rows than the adapters of PEFT.
func TestMergeLoRAIntoGGUF(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	mergedLikeTransformers(t, "llama", loraData+"llama/model.gguf")
}

func mergedLikeTransformers(t *testing.T, name, model string) {
	t.Helper()
	want := adaptedExpected(t, name)
	for _, adapter := range want.adapters() {
		paths := []string{loraData + name + "/" + adapter}
		if gguf := paths[0] + ".gguf"; isFile(gguf) {
			paths = append(paths, gguf)
		}
		for _, path := range paths {
			p, err := generate(model, Options{Quant: "f32", MergeLoRA: path})
			if err != nil && strings.Contains(err.Error(), "the output head is also the token embedding") {
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			e, err := engine.Open(loaded(t, p), loraOptions)
			if err != nil {
				t.Fatal(err)
			}
			compareAdapted(t, e, want, adapter, nil)
			e.Close()
			p.Close()
		}
	}
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestMergedTypes: weights keep the types that they have without the adapter, and the
// files of the adapter belong to what is packed and to what the binary reports.
func TestMergedTypes(t *testing.T) {
	t.Parallel()
	adapter := loraData + "llama/all"
	for _, quant := range []string{"", "f16", "q4"} {
		plain, err := generate(loraModels+"llama", Options{Quant: quant})
		if err != nil {
			t.Fatal(err)
		}
		merged, err := generate(loraModels+"llama", Options{Quant: quant, MergeLoRA: adapter})
		if err != nil {
			t.Fatal(err)
		}
		types := merged.whole.CPU.Manifest.Weights
		for i, w := range plain.whole.CPU.Manifest.Weights {
			if w.DType != types[i].DType {
				t.Errorf("--quant %q: %s is %s, merged %s", quant, w.Name, w.DType, types[i].DType)
			}
		}
		before, _ := checkpoint.Fingerprint(plain.set.Files())
		after, err := checkpoint.Fingerprint(merged.set.Files())
		if err != nil || before == after || merged.merged["all/adapter_config.json"] == "" || len(merged.merged["all/adapter_model.safetensors"]) != 64 {
			t.Errorf("fingerprints %s, %s, inputs %v: %v", before, after, merged.merged, err)
		}
		plain.Close()
		merged.Close()
	}
}

// TestMergeRefuses: what is refused at run time is refused when merging.
func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	head := t.TempDir()
	files := map[string][]byte{"adapter_config.json": []byte(`{"peft_type":"LORA"}`), "adapter_model.safetensors": randomTensors(t, map[string][]int{"lm_head.lora_A.weight": {8, 64}, "lm_head.lora_B.weight": {256, 8}})}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(head, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refuse := func(model, adapter, want string) {
		p, err := generate(loraModels+model, Options{Quant: "f32", MergeLoRA: adapter})
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), adapter) {
			t.Errorf("%s into %s: error %v, want …%s…", adapter, model, err, want)
		}
	}
	for name, want := range refusedAdapters {
		refuse("llama", loraData+"refused/"+name, want)
	}
	refuse("llama", loraData+"bert/all", "is the adapter for another model?")
	refuse("gemma2", head, "this model's output head is also the token embedding")
	refuse("llama", filepath.Join(head, "none"), "no such file")
}

// TestMergedMatrices compares every matrix with one to which the products were added
// before, also of experts and with inputs and outputs exchanged.
func TestMergedMatrices(t *testing.T) {
	t.Parallel()
	for _, family := range []string{"mixtral", "gpt2", "bert"} {
		dir := loraModels + family
		plain, err := open(dir, Options{Quant: "f32"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		var sites []manifest.Site
		targets, err := plain.mergeTargets()
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range slices.Sorted(maps.Keys(targets)) {
			to := targets[file]
			if file+".weight" != to.file {
				continue // an alias
			}
			info, _ := plain.set.Lookup(to.file)
			out, in := info.Shape[0], info.Shape[1]
			if to.transposed {
				out, in = in, out
			}
			sites = append(sites, manifest.Site{Parts: []manifest.SitePart{{Names: []manifest.SiteName{{Name: file}}, Out: out, In: in}}})
		}
		adapter := randomAdapter(t, sites, 3, all)
		merged, err := open(dir, Options{Quant: "f32", MergeLoRA: adapter}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer merged.Close()
		want := openSet(t, filepath.Join(mergedFolder(t, dir, adapter, family == "gpt2"), "model.safetensors"))
		changed := 0
		for _, info := range merged.set.Tensors() {
			x, y, before := floats(t, merged.set, info.Name), floats(t, want, info.Name), floats(t, plain.set, info.Name)
			for i := range x {
				if math.Abs(float64(x[i]-y[i])) > 1e-6 {
					t.Errorf("%s: %s[%d] is %v, want %v", family, info.Name, i, x[i], y[i])
					break
				}
			}
			if !slices.Equal(x, before) {
				changed++
			}
		}
		if changed != len(sites) {
			t.Errorf("%s: %d of %d matrices changed", family, changed, len(sites))
		}
	}
}

// TestMergeKeepsEmbeddings: no name of an adapter is that of an embedding, even if it is
// the output head too.
func TestMergeKeepsEmbeddings(t *testing.T) {
	t.Parallel()
	for _, family := range []string{"gemma2", "gpt2", "bert", "t5"} {
		m, err := open(loraModels+family, Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		targets, err := m.mergeTargets()
		if err != nil {
			t.Fatal(err)
		}
		for name, to := range targets {
			if name == "output" || name == "lm_head" || strings.Contains(to.file, "embed") || strings.Contains(to.file, "shared") || strings.Contains(to.file, "wte") {
				t.Errorf("%s: %q is %s", family, name, to.file)
			}
		}
		if len(targets) < 10 {
			t.Errorf("%s: %d names", family, len(targets))
		}
	}
}

// TestMergeRefinesTypes: a quantized model gets a type that keeps what the adapter adds,
// unless a type is given.
func TestMergeRefinesTypes(t *testing.T) {
	t.Parallel()
	quantized := filepath.Join(t.TempDir(), "q.gguf")
	if err := os.WriteFile(quantized, checkpointtest.GGUF(nil, checkpointtest.Quantized("q", tensor.GQ4_1, 1, 64)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, adapter string
		have, want    tensor.DType
	}{
		{quantized, "a", tensor.Invalid, tensor.Q8B32T2},
		{quantized, "a", tensor.Q4B32, tensor.Q4B32},
		{quantized, "", tensor.Invalid, tensor.Invalid},
		{loraModels + "llama/model.safetensors", "a", tensor.Invalid, tensor.Invalid},
	} {
		m := &Model{opt: Options{MergeLoRA: c.adapter}, set: openSet(t, c.file)}
		s := &spec.Spec{Quant: c.have}
		if refined := m.refineMerged(s); s.Quant != c.want || refined != (c.have != c.want) {
			t.Errorf("%s with adapter %q and %s: %s, refined: %v", c.file, c.adapter, c.have, s.Quant, refined)
		}
	}
}
