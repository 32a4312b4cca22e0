package compiler

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// TestEmulatedMatmuls: every kernel of a matmul gives what the interpreter
// does, with rows and columns that no tile divides, one row to several tiles of
// them, and every way to round activations.
func TestEmulatedMatmuls(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	seed := irtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i, name := range sampleTypes(t, weightTypes, plainType) {
		dt, _ := tensor.ParseDType(name)
		text := products(rng, dt)
		t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
			t.Parallel()
			m := madeUp(t, text, seed)
			m.emulated(t)
			t.Logf("IFLOWC_TEST_SEED=%d:\n%s", seed, text)
			for _, rows := range irtest.Sample(t, 2, []int{1, 2, 4, 5, 8, 9, 31, 33, 40}) {
				m.compare(t, prompt(rows, rows), 64, 2e-3) // whichever is chosen
			}
			for _, impl := range implsOf(m.plan) {
				m.change(t, using(impl))
				tolerance := 2e-4
				if roundsToF16(impl) {
					tolerance = 2e-3
				}
				for _, rows := range irtest.Sample(t, 1, []int{1, 3, 9, 33}) {
					m.compare(t, prompt(rows, rows), 64, tolerance)
				}
			}
		})
	}
}

// products is the text of a module that multiplies rows of tables by matrices of
// a type, eight of them.
func products(rng *rand.Rand, dt tensor.DType) string {
	var decls, body bytes.Buffer
	yield := ""
	for i := range 8 {
		k, n := 1+rng.IntN(200), 1+rng.IntN(100)
		if dt.IsBlock() {
			k = dt.Block() * (1 + rng.IntN(6))
		}
		if rng.IntN(2) == 0 {
			n = 16*(1+rng.IntN(8)) + []int{-1, 0, 1}[rng.IntN(3)]
		}
		if i == 7 { // long enough for several blocks to divide K
			k, n = 8192+dt.Block()*rng.IntN(40), 1+rng.IntN(40)
		}
		transform := fmt.Sprintf("\"w%d\"", i)
		if dt.IsBlock() {
			transform = fmt.Sprintf("quantize(%s, %s)", transform, dt)
		}
		fmt.Fprintf(&decls, "weight @e%d : f32[40, %d] from \"e%d\"\nweight @w%d : %s[%d, %d] from %s\n", i, k, i, i, dt, n, k, transform)
		fmt.Fprintf(&body, "%%x%d = embed %%ids, @e%d\n", i, i)
		x := fmt.Sprintf("%%x%d", i)
		if dt.IsBlock() && i != 0 { // the first one stays as it is
			fmt.Fprintf(&body, "%%q%d = quantize_act %s {type=a8_b%d, outliers=%d}\n", i, x, dt.Block(), i%5)
			x = fmt.Sprintf("%%q%d", i)
		} else if dt == tensor.BF16 && i%2 == 0 {
			fmt.Fprintf(&body, "%%q%d = quantize_act %s {type=bf16}\n", i, x)
			x = fmt.Sprintf("%%q%d", i)
		}
		fmt.Fprintf(&body, "%%y%d = matmul %s, @w%d\n", i, x, i)
		yield += fmt.Sprintf("%%y%d, ", i)
	}
	return fmt.Sprintf("module products {\n%sgraph encode (T tokens) {\ninput %%ids : i32[T]\n%syield %s\n}\n}\n", decls.String(), body.String(), yield[:len(yield)-2])
}

// TestEmulatedModules: made-up decoders, with mixtures of experts too, give what
// the interpreter does, read token by token, a few at a time and at once.
func TestEmulatedModules(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	n, first := uint64(1), 10*irtest.Seed(t)
	if irtest.All() {
		n = 12
	}
	for seed := first; seed < first+n; seed++ {
		for _, name := range irtest.Sample(t, 1, []string{"plain", "experts"}) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				mod := map[string]func(uint64) *ir.Module{"plain": irtest.Random, "experts": irtest.RandomMoE}[name](seed)
				if seed/10%2 == 1 || seed%2 == 1 {
					irtest.WriteIndices(mod, seed)
				}
				m := madeUp(t, mod.String(), seed)
				m.emulated(t)
				for _, budget := range []int{1, 3, 64} {
					m.compare(t, prompt(11, 3), budget, 1e-2)
				}
			})
		}
	}
}

// A madeUpModel is a module with made-up weights, as the interpreter runs it and
// as a target does.
type madeUpModel struct {
	mod     *ir.Module
	weights interp.Weights
	code    *codegen.CPUModel
	gpu     *codegen.CUDAModel
	plan    *manifest.CUDA
	cache   *toolchain.Cache
	model   engine.Model // without a device
}

// madeUp generates a module's code, without its text being anybody's
// specification.
func madeUp(t *testing.T, text string, seed uint64) *madeUpModel {
	t.Helper()
	mod, code, gpu, err := generated(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	src, err := interp.Random(seed, mod)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := toolchain.OpenCache(testCache(t))
	if err != nil {
		t.Fatal(err)
	}
	man := &code.Manifest
	man.Vocab, man.Context, man.BOS, man.Pad = 40, 64, -1, -1
	path, err := packWeights(t.Context(), cache, pack.Source{Set: storedIn(t, mod, src)}, code.Pack, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return &madeUpModel{mod: mod, weights: interp.NewWeights(mod, src), code: code, gpu: gpu, plan: &gpu.Plan, cache: cache,
		model: engine.Model{Manifest: man, Weights: opened(t, man, path)}}
}

// emulated gives the model a device of the emulation.
func (m *madeUpModel) emulated(t *testing.T) { m.change(t, func(*cuda.Device) {}) }

// change is emulated on a device that the test changes.
func (m *madeUpModel) change(t *testing.T, change func(*cuda.Device)) {
	t.Helper()
	m.model.Device = emulatedDevice(t, m.cache, m.model.Manifest, m.gpu, change)
}

// onCPU gives the model this processor.
func (m *madeUpModel) onCPU(t *testing.T) {
	t.Helper()
	isas, err := pickISAs("", "")
	if err != nil {
		t.Fatal(err)
	}
	m.model.Device = loadedLibrary(t, m.cache, m.code, quick(isas))
	m.model.Dispatch = tableOf(t, m.model.Manifest.Matmuls, nil)
}

// compare reads ids, so many a step, and compares all rows, which it gives,
// output by output.
func (m *madeUpModel) compare(t *testing.T, ids []int32, budget int, tolerance float64) [][]float32 {
	t.Helper()
	return m.compareLast(t, ids, len(ids), budget, tolerance)
}

// compareLast is compare with output rows for the last few tokens alone.
func (m *madeUpModel) compareLast(t *testing.T, ids []int32, last, budget int, tolerance float64) [][]float32 {
	t.Helper()
	step := &interp.Step{}
	for i := range ids {
		ids[i] %= 40
		step.IDs = append(step.IDs, int(ids[i]))
	}
	for i := len(ids) - last; i < len(ids); i++ {
		step.OutRows = append(step.OutRows, i)
	}
	want, err := interp.Run(m.mod, m.mod.Graphs[0].Name, step, m.weights, interp.NewStates())
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(m.model, engine.Options{MaxTokens: budget, MaxOutRows: 64, Context: 64, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.AddQuery(engine.Query{Tokens: ids, Last: last}); err != nil {
		t.Fatal(err)
	}
	got := make([][]float32, len(want))
	for row := 0; row < last; {
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			for o, out := range want {
				y := m.mod.Graphs[0].Body.Yield[o]
				if y.Role() == "tokens" && last < len(ids) {
					continue
				}
				cols := y.Type.Cols()
				for i := range r.Rows {
					got[o] = append(got[o], r.Row(o, i)...)
					sameRow(t, fmt.Sprintf("last %d of %d tokens, %d a step: output %d (%s), row %d", last, len(ids), budget, o, y.OutputName(), row+i), r.Row(o, i), out.F[(row+i)*cols:][:cols], tolerance)
				}
			}
			row += r.Rows
		}
	}
	return got
}

// sameRow compares numbers, by their largest.
func sameRow(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	worst, largest := 0.0, 0.0
	for i, w := range want {
		worst, largest = math.Max(worst, math.Abs(float64(got[i])-w)), math.Max(largest, math.Abs(w))
	}
	if limit := tolerance * (1 + largest); len(got) != len(want) || !(worst <= limit) {
		t.Errorf("%s: %d numbers differ by %.2e from the interpreter's %d, want at most %.2e", what, len(got), worst, len(want), limit)
	}
}

// storedIn writes the tensors that a module's transforms name to a file, and opens it.
func storedIn(t *testing.T, mod *ir.Module, src interp.Source) *checkpoint.Set {
	t.Helper()
	shapes, values := map[string][]int{}, map[string][]float32{}
	recorded := interp.NewWeights(mod, func(name string) (*tensor.Tensor, error) {
		x, err := src(name)
		if err != nil || shapes[name] != nil {
			return x, err
		}
		shapes[name] = x.Shape
		for _, f := range x.F {
			values[name] = append(values[name], float32(f))
		}
		return x, nil
	})
	for _, w := range mod.Weights {
		for _, index := range indices(w.Count) {
			if _, err := recorded.Weight(w, index); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, tensorFile(t, shapes, func(name string) []float32 { return values[name] }), 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// indices are those of all elements of a weight.
func indices(counts []ir.Range) [][]int {
	out := [][]int{nil}
	for _, c := range counts {
		var next [][]int
		for _, before := range out {
			for i := c.Lo; i < c.Hi; i++ {
				next = append(next, append(append([]int(nil), before...), i))
			}
		}
		out = next
	}
	return out
}
