package compiler

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/templates"
)

// demoModel compiles the demo model's library for this processor, with the
// annotations edited, and loads it.
func demoModel(t *testing.T, quant string, edit func(*ir.Module)) engine.Model {
	t.Helper()
	return loaded(t, demoProgram(t, quant, edit))
}

// demoProgram is the demo model's program. quant is a weight type, and behind a slash how
// activations are rounded.
func demoProgram(t *testing.T, quant string, edit func(*ir.Module)) *Program {
	t.Helper()
	quant, act, _ := strings.Cut(quant, "/")
	p, err := generate("../../models/demo.yaml", Options{Quant: quant, Activations: act})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if edit != nil {
		edit(p.Module)
		if p.whole.CPU, err = p.Code(p.Module); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// generate runs the front end: a spec's program, to be closed.
func generate(spec string, opt Options) (*Program, error) {
	m, err := Open(context.Background(), spec, opt)
	if err != nil {
		return nil, err
	}
	p, err := m.Generate(context.Background())
	if err != nil {
		m.Close()
	}
	return p, err
}

// loaded compiles a program's library for this processor and loads it with its
// weights; of one on several devices every rank's, to run as threads.
func loaded(t *testing.T, p *Program) engine.Model {
	t.Helper()
	p.isas = quick(p.isas)
	return asShipped(t, p)
}

// quick gives instruction sets whose C is compiled with less optimization, a step in 0.54 s
// instead of 1.26 s: C whose arithmetic may be neither contracted nor reordered gives the same
// bits. Where irtest.All says so it is compiled as it is shipped.
func quick(isas []templates.ISA) []templates.ISA {
	if irtest.All() {
		return isas
	}
	isas = slices.Clone(isas)
	for i := range isas {
		isas[i].Flags = append(slices.Clone(isas[i].Flags), "-Og")
	}
	return isas
}

// asShipped is loaded with the flags of iflowc compile.
func asShipped(t *testing.T, p *Program) engine.Model {
	t.Helper()
	man := &p.whole.CPU.Manifest
	p.Model.identify(man, nil)
	if p.ranks != nil {
		return engine.Model{Manifest: man, Device: loadedRanks(t, p)}
	}
	lib, mem := loadedCode(t, p, p.whole.CPU)
	return engine.Model{Manifest: man, Device: lib, Weights: mem, Dispatch: tableOf(t, man.Matmuls, nil)}
}

// loadedCode is loaded for one rank.
func loadedCode(t *testing.T, p *Program, code *codegen.CPUModel) (*cpu.Library, []byte) {
	t.Helper()
	cache, err := toolchain.OpenCache(testCache(t))
	if err != nil {
		t.Fatal(err)
	}
	path, err := packWeights(t.Context(), cache, p.source(), code.Pack, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return loadedLibrary(t, cache, code, p.isas), opened(t, &code.Manifest, path)
}

// loadedLibrary compiles a module's code for this processor, or for any, and
// loads it.
func loadedLibrary(t *testing.T, cache *toolchain.Cache, code *codegen.CPUModel, isas []templates.ISA) *cpu.Library {
	t.Helper()
	cc := devicetest.NeedCompiler(t)
	if len(cpu.Missing(isas[0].Needs)) == 0 {
		isas = isas[:1]
	} else {
		isas = isas[len(isas)-1:]
	}
	libs, err := libraries(t.Context(), &toolchain.Builder{Cache: cache, CC: cc}, code, isas)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := cpu.OpenFile(libs[0].isa.Name, libs[0].path)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func tableOf(t *testing.T, matmuls []manifest.Matmul, p *dispatch.Profile) []byte {
	t.Helper()
	table, err := dispatch.Table(matmuls, p)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// testCache is shared by the tests of this package, so that each translation
// unit is compiled once.
func testCache(t *testing.T) string {
	t.Helper()
	dir, err := toolchain.Dir("")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// prompt is a sequence of ids with no meaning.
func prompt(n, seed int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32((i*i*7 + i*31 + seed*97) % 1000)
	}
	return out
}

// logitsOf computes the logits of every token of some sequences, together.
func logitsOf(t *testing.T, m engine.Model, opt engine.Options, seqs [][]int32) [][]float32 {
	t.Helper()
	return adaptedLogits(t, m, opt, seqs, nil, func(int) int { return -1 })
}

// adaptedLogits is logitsOf with adapters, which adapter names by sequence; -1: none.
func adaptedLogits(t *testing.T, m engine.Model, opt engine.Options, seqs [][]int32, paths []string, adapter func(seq int) int) [][]float32 {
	t.Helper()
	opt.MaxSeqs = len(seqs)
	opt.MaxOutRows = 512
	e, list := openAdapted(t, m, opt, paths...)
	defer e.Close()
	at := map[engine.ID]int{}
	out := make([][]float32, len(seqs))
	for i, s := range seqs {
		q := engine.Query{Tokens: s, Last: -1, Source: sourceOf(m)}
		if n := adapter(i); n >= 0 {
			q.Adapter = list[n]
		}
		id, err := e.AddQuery(q)
		if err != nil {
			t.Fatal(err)
		}
		at[id] = i
	}
	for len(at) > 0 {
		rs, err := e.Infer(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			for i := range r.Rows {
				out[at[r.ID]] = append(out[at[r.ID]], r.Row(0, i)...)
			}
			if r.Ready {
				e.Remove(r.ID)
				delete(at, r.ID)
			}
		}
	}
	return out
}

// sourceOf is what the texts of an encoder-decoder are written from; nil of other
// models.
func sourceOf(m engine.Model) []int32 {
	if m.Manifest.Network != "encoder_decoder" {
		return nil
	}
	return []int32{5, 9, 6, 11, 5, 7, 9}
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: value %d is %g, want exactly %g", what, i, got[i], want[i])
		}
	}
}

// TestOneOrderOfSummation: the logits of a token are the same bits whatever
// the chunking of its prompt, the batch, the threads, the implementations the
// dispatch table names, and the annotations.
func TestOneOrderOfSummation(t *testing.T) {
	t.Parallel()
	for _, quant := range sampleTypes(t, []string{"f32", "f16", "q8_b32", "q8_b32t2", "q4_b32", "q4_b64", "q6_b64/int8+1", "q4_b64/int8", "q4_b64/f32", "bf16/bf16"}, plainType) {
		t.Run(quant, func(t *testing.T) {
			m := asShipped(t, demoProgram(t, quant, nil))
			long := prompt(100, 1)
			want := logitsOf(t, m, engine.Options{Threads: 1}, [][]int32{long})[0]
			for _, chunk := range []int{1, 7, 17, 64} {
				got := logitsOf(t, m, engine.Options{Threads: 1, MaxTokens: chunk}, [][]int32{long})[0]
				sameBits(t, fmt.Sprintf("chunks of %d", chunk), got, want)
			}
			sameBits(t, "two threads", logitsOf(t, m, engine.Options{Threads: 2}, [][]int32{long})[0], want)
			sameBits(t, "three threads", logitsOf(t, m, engine.Options{Threads: 3, MaxTokens: 40}, [][]int32{long})[0], want)
			batch := [][]int32{long}
			for i := range 31 {
				batch = append(batch, prompt(3+i, i+2))
			}
			together := logitsOf(t, m, engine.Options{Threads: 2, MaxTokens: 100}, batch)
			sameBits(t, "in a batch of 32", together[0], want)
			sameBits(t, "last of a batch of 32", together[31], logitsOf(t, m, engine.Options{Threads: 1}, batch[31:])[0])
			for _, impl := range []string{"gemv", "flat_gemm", "gemm"} {
				if !slices.Contains(m.Manifest.Matmuls[0].Impls, impl) {
					continue // for one code a byte, unpacking a panel gains nothing
				}
				one := m
				one.Dispatch = onlyImpl(t, m.Manifest.Matmuls, impl)
				got := logitsOf(t, one, engine.Options{Threads: 1, MaxTokens: 64}, [][]int32{long})[0]
				sameBits(t, "all by "+impl, got, want)
			}
			if strings.HasPrefix(quant, "q") { // buffers of their own for all values, and one kernel for all rows
				bare := asShipped(t, demoProgram(t, quant, ir.DropAnnotations))
				sameBits(t, "without annotations", logitsOf(t, bare, engine.Options{Threads: 2}, [][]int32{long})[0], want)
			}
		})
	}
}

// sampleTypes gives all cases, typeOf which is a weight type, where irtest.All
// says so; else one of a float type and one of a block type, by irtest.Order.
func sampleTypes[T any](t *testing.T, cases []T, typeOf func(T) string) (out []T) {
	t.Helper()
	if irtest.All() {
		return cases
	}
	t.Logf("some of %d cases, IFLOWC_TEST_SEED=%d", len(cases), irtest.Seed(t))
	drawn := map[bool]bool{} // by whether it is a block type
	for _, i := range irtest.Order(t, cases, typeOf) {
		dt, ok := tensor.ParseDType(typeOf(cases[i]))
		if !ok {
			t.Fatalf("no weight type %q", typeOf(cases[i]))
		}
		if !drawn[dt.IsBlock()] {
			out = append(out, cases[i])
		}
		drawn[dt.IsBlock()] = true
	}
	return out
}

// plainType is the weight type of a quant, before how activations are rounded.
func plainType(quant string) string {
	name, _, _ := strings.Cut(quant, "/")
	return name
}

// onlyImpl is the table of a profile that uses one implementation everywhere.
func onlyImpl(t *testing.T, matmuls []manifest.Matmul, impl string) []byte {
	t.Helper()
	p := &dispatch.Profile{Format: dispatch.Format}
	for _, s := range matmuls {
		if !slices.Contains(s.Impls, impl) {
			continue
		}
		p.Shapes = append(p.Shapes, dispatch.Shape{N: s.N, K: s.K, DType: s.DType, Rules: []dispatch.Rule{{Rows: 1, Impl: impl}}})
	}
	table := tableOf(t, matmuls, p)
	if slices.Equal(table, tableOf(t, matmuls, nil)) {
		t.Fatalf("a profile that says %s everywhere leaves the table as it is", impl)
	}
	return table
}

// TestUnoptimized: the module as lowered, with no pass but quantize, builds,
// runs and gives the same numbers.
func TestUnoptimized(t *testing.T) {
	t.Parallel()
	long := prompt(20, 4)
	want := logitsOf(t, demoModel(t, "f32", nil), engine.Options{Threads: 2}, [][]int32{long})[0]
	raw := demoModel(t, "f32", func(m *ir.Module) {
		om, err := Open(t.Context(), "../../models/demo.yaml", Options{Quant: "f32"})
		if err != nil {
			t.Fatal(err)
		}
		defer om.Close()
		mod, err := om.Module(passes.Options{Limit: -1, After: "quantize"})
		if err != nil {
			t.Fatal(err)
		}
		*m = *mod
	})
	got := logitsOf(t, raw, engine.Options{Threads: 2}, [][]int32{long})[0]
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); d > 1e-4 {
			t.Fatalf("value %d is %g, want %g", i, got[i], want[i])
		}
	}
}
