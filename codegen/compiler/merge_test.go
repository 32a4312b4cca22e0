package compiler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// TestMergeLoRA: with an adapter in their weights, compiled models compute what
// transformers does with the adapter.
func TestMergeLoRA(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	for _, name := range irtest.Sample(t, 4, adaptedModels(t)) {
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
			compareAdapted(t, e, want, adapter)
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
		if err != nil || before == after || len(merged.merged) != 2 {
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
