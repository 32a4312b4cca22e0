package compiler

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// randomAdapter writes an adapter in PEFT's format, with random matrices for the stored
// matrices of which sites have rows and that want accepts.
func randomAdapter(t *testing.T, sites []manifest.Site, rank int, want func(name string) bool) string {
	t.Helper()
	dir, shapes := t.TempDir(), map[string][]int{}
	for _, s := range sites {
		for _, p := range s.Parts {
			if name := p.Names[0].Name; want(name) {
				shapes["base_model.model."+name+".lora_A.weight"] = []int{rank, p.In}
				shapes["base_model.model."+name+".lora_B.weight"] = []int{p.Out, rank}
			}
		}
	}
	if len(shapes) == 0 {
		t.Fatal("no site has an accepted name")
	}
	config := fmt.Sprintf(`{"peft_type": "LORA", "r": %d, "lora_alpha": %d}`, rank, rank)
	for name, data := range map[string][]byte{"adapter_config.json": []byte(config), "adapter_model.safetensors": randomTensors(t, shapes)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func all(string) bool { return true }

// isStored reports whether a model has a matrix of a name; a head that is the embedding has
// none of its own.
func isStored(p *Program) func(name string) bool {
	return func(name string) bool {
		_, ok := p.Model.set.Lookup(name + ".weight")
		return ok
	}
}

// TestAdaptersAlone: whatever else is in a batch, however prompts are cut and however many
// threads compute, a sequence has the bits that it has alone; one without an adapter has
// those of an engine that has loaded none.
func TestAdaptersAlone(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	for _, quant := range irtest.Sample(t, 1, []string{"f32", "f16", "q8_b32", "q8_b32t2", "q4_b32", "q4_b64"}) {
		t.Run(quant, func(t *testing.T) {
			m := demoModel(t, quant, nil)
			sites, i := m.Manifest.Sites, 0
			some := func(string) bool { i++; return i%3 == 0 }
			paths := []string{randomAdapter(t, sites, 1, all), randomAdapter(t, sites, 8, some), randomAdapter(t, sites, 16, all), randomAdapter(t, sites, 33, some)}
			adapter := func(i int) int { return i%(len(paths)+1) - 1 } // of sequence i
			var batch [][]int32
			for i := range 15 {
				batch = append(batch, prompt(2+3*i, i+1))
			}
			want := make([][]float32, len(batch))
			for i, ids := range batch {
				want[i] = adaptedLogits(t, m, engine.Options{Threads: 1}, [][]int32{ids}, paths, func(int) int { return adapter(i) })[0]
			}
			for _, opt := range []engine.Options{{Threads: 1}, {Threads: 2}, {Threads: 3, MaxTokens: 16}, {Threads: 2, MaxTokens: 15}, {Threads: 2, MaxTokens: 40}} {
				for i, got := range adaptedLogits(t, m, opt, batch, paths, adapter) {
					sameBits(t, fmt.Sprintf("%d threads, %d tokens, sequence %d", opt.Threads, opt.MaxTokens, i), got, want[i])
				}
			}
			for i, plain := range logitsOf(t, m, engine.Options{Threads: 2}, batch) {
				if adapter(i) < 0 {
					sameBits(t, fmt.Sprintf("sequence %d without an adapter", i), want[i], plain)
				} else if slices.Equal(want[i], plain) {
					t.Errorf("sequence %d: the adapter has no effect", i)
				}
			}
		})
	}
}

// TestFamiliesAlone does the same for models of every kind: encoders, encoder-decoders,
// experts, several orders of rows.
func TestFamiliesAlone(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	for _, name := range irtest.Sample(t, 2, adaptedModels(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := generate(loraModels+name, Options{Quant: "f32"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			m := loaded(t, p)
			paths := []string{randomAdapter(t, m.Manifest.Sites, 5, isStored(p)), randomAdapter(t, m.Manifest.Sites, 20, isStored(p))}
			adapter := func(i int) int { return i%3 - 1 }
			var batch [][]int32
			for i := range 7 {
				ids := prompt(3+i, i)
				for k := range ids {
					ids[k] = ids[k]%(vocabulary-3) + 3
				}
				batch = append(batch, ids)
			}
			for i, got := range adaptedLogits(t, m, engine.Options{Threads: 2, Context: 64}, batch, paths, adapter) {
				want := adaptedLogits(t, m, engine.Options{Threads: 1, Context: 64}, batch[i:i+1], paths, func(int) int { return adapter(i) })[0]
				sameBits(t, fmt.Sprintf("sequence %d", i), got, want)
			}
		})
	}
}

// TestAdaptersLikeMerged: an adapter at run time has the effect of the same matrices added to
// the model's files, for every family, where possible in sizes that panels of 16 rows do not
// divide.
func TestAdaptersLikeMerged(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	files, err := filepath.Glob(loraModels + "*/expected.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, file := range irtest.SampleBy(t, 1, files, folderName) {
		dir, family := filepath.Dir(file), folderName(file)
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			if canWiden(t, family) {
				dir = wider(t, family, 3)
			}
			likeMerged(t, dir, strings.HasPrefix(family, "gpt2"))
		})
	}
}

// likeMerged compares a model with an adapter and with merged weights; transposed says that
// its matrices are stored as inputs by outputs.
func likeMerged(t *testing.T, dir string, transposed bool) {
	t.Helper()
	p, err := generate(dir, Options{Quant: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	adapter := randomAdapter(t, p.whole.CPU.Manifest.Sites, 5, isStored(p))
	merged, err := generate(mergedFolder(t, dir, adapter, transposed), Options{Quant: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	defer merged.Close()
	in := familyInputs(t, dir)
	q := engine.Query{Tokens: asInt32(in.IDs), Types: asInt32(in.Types), Last: -1}
	if in.DecoderIDs != nil {
		q = engine.Query{Tokens: asInt32(in.DecoderIDs), Source: asInt32(in.IDs), Last: -1}
	}
	e, list := openAdapted(t, loaded(t, p), loraOptions, adapter)
	defer e.Close()
	other, _ := openAdapted(t, loaded(t, merged), loraOptions)
	defer other.Close()
	want := oneResult(t, other, q)
	q.Adapter = list[0]
	nearRows(t, e, oneResult(t, e, q), want, 2e-4)
}

// TestAdaptersOfQuantized: with quantized weights an adapter has the effect of the same
// matrices added before quantization, except for what quantization loses.
func TestAdaptersOfQuantized(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	const folder = "../../models/demo"
	for _, c := range irtest.Sample(t, 1, []struct {
		quant     string
		tolerance float64 // of the difference, as a part of the effect: measured with five seeds and doubled
	}{{"q8", 0.06}, {"q4", 0.4}}) {
		t.Run(c.quant, func(t *testing.T) {
			t.Parallel()
			p, err := generate(folder, Options{Quant: c.quant})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			adapter := randomAdapter(t, p.whole.CPU.Manifest.Sites, 8, func(name string) bool { return strings.HasSuffix(name, ".v_proj") })
			merged, err := generate(mergedFolder(t, folder, adapter, false), Options{Quant: c.quant})
			if err != nil {
				t.Fatal(err)
			}
			defer merged.Close()
			opt, seqs, m := engine.Options{Threads: 2}, [][]int32{prompt(40, 1)}, loaded(t, p)
			base, want := logitsOf(t, m, opt, seqs)[0], logitsOf(t, loaded(t, merged), opt, seqs)[0]
			got := adaptedLogits(t, m, opt, seqs, []string{adapter}, func(int) int { return 0 })[0]
			difference := apart(got, want) / apart(got, base)
			t.Logf("the difference is %.4f of the effect", difference)
			if !(difference <= c.tolerance) {
				t.Errorf("the adapter differs from merged weights by %.4f of its effect, want at most %.2f", difference, c.tolerance)
			}
		})
	}
}

// apart is the Euclidean distance of two vectors.
func apart(a, b []float32) float64 {
	sum := 0.0
	for i, x := range a {
		sum += float64(x-b[i]) * float64(x-b[i])
	}
	return math.Sqrt(sum)
}

func familyInputs(t *testing.T, dir string) (in inputs) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &in); err != nil {
		t.Fatal(err)
	}
	return in
}

// nearRows compares all outputs of two results of the same query.
func nearRows(t *testing.T, e *engine.Engine, got, want engine.Result, tolerance float64) {
	t.Helper()
	for o, out := range e.Graph().Outputs {
		rows := got.Rows
		if out.Rows == "sequences" {
			rows = 1
		}
		worst, largest := 0.0, 0.0
		for i := range rows {
			w := want.Row(o, i)
			for j, x := range got.Row(o, i) {
				worst, largest = math.Max(worst, math.Abs(float64(x-w[j]))), math.Max(largest, math.Abs(float64(w[j])))
			}
		}
		if !(worst <= tolerance*(1+largest)) {
			t.Errorf("output %s: the adapter differs by %.2e from merged weights, of at most %.2f", out.Name, worst, largest)
		}
	}
}

// mergedFolder is a copy of a model's folder with an adapter's products added to the stored
// matrices. transposed says that these, square ones too, are stored as inputs by outputs.
func mergedFolder(t *testing.T, dir, adapter string, transposed bool) string {
	t.Helper()
	set, factors := openSet(t, filepath.Join(dir, "model.safetensors")), openSet(t, filepath.Join(adapter, "adapter_model.safetensors"))
	shapes := map[string][]int{}
	for _, x := range set.Tensors() {
		shapes[x.Name] = x.Shape
	}
	out := t.TempDir()
	if err := os.CopyFS(out, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	data := tensorFile(t, shapes, func(name string) []float32 {
		values, key := floats(t, set, name), "base_model.model."+strings.TrimSuffix(name, "weight")
		if a, ok := factors.Lookup(key + "lora_A.weight"); ok {
			b := floats(t, factors, key+"lora_B.weight")
			addProduct(values, floats(t, factors, key+"lora_A.weight"), b, a.Shape[0], transposed || shapes[name][0] != len(b)/a.Shape[0])
		}
		return values
	})
	if err := os.WriteFile(filepath.Join(out, "model.safetensors"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}

func openSet(t *testing.T, path string) *checkpoint.Set {
	t.Helper()
	set, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

func floats(t *testing.T, set *checkpoint.Set, name string) []float32 {
	t.Helper()
	values, err := set.Float32(name)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(values)
}

// addProduct adds B·A to a matrix [outputs, inputs], or to its transpose.
func addProduct(w, a, b []float32, rank int, transposed bool) {
	in, out := len(a)/rank, len(b)/rank
	for i := range out {
		for j := range in {
			sum := 0.0
			for r := range rank {
				sum += float64(b[i*rank+r]) * float64(a[r*in+j])
			}
			if transposed {
				w[j*out+i] += float32(sum)
			} else {
				w[i*in+j] += float32(sum)
			}
		}
	}
}
