package compiler

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/engine"
)

// TestEmulatedTypes: the demo model in every weight type, with every type of keys
// and values, every rounding of activations and sparse outliers, gives under
// emulation what the interpreter gives for the same module; read token by token,
// a few tokens a step (several rows a block), and all at once, so that every
// kernel of a product runs. The tolerance is for numbers that round the other way
// to eight bits, which the CPU target has too: it agrees to 2e-6.
func TestEmulatedTypes(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	ids := prompt(21, 3)
	cases := []struct {
		quant, kv, act string
		outliers       float64
	}{
		{quant: "f32", kv: "f32"}, {quant: "f16", kv: "f16"}, {quant: "bf16", act: "bf16"}, {quant: "q8_b32t2", kv: "q8_b32t2"}, {quant: "f16", kv: "q4"},
		{quant: "q4_b64", kv: "q8_b32t2", act: "int8+1"}, {quant: "q4_b32", outliers: 0.03}, {quant: "q3h_b64", act: "f32", outliers: 0.03},
		{quant: "bf16", kv: "bf16"}, {quant: "q8_b32"}, {quant: "q8_b64"}, {quant: "q6_b64"}, {quant: "q5_b64"}, {quant: "q5_b32"},
		{quant: "q4_b32", act: "int8"}, {quant: "q4_b64", act: "f32"}, {quant: "q3_b32", act: "int8+4"}, {quant: "q2_b32"},
		{quant: "q6t_b32"}, {quant: "q5t_b32", act: "int8"}, {quant: "q4t_b32"}, {quant: "q4t_b32", act: "f32", outliers: 0.03}, {quant: "q3t_b32"}, {quant: "q2t_b32"},
		{quant: "q6_b16t2"}, {quant: "q4_b16t2", act: "int8"}, {quant: "q4_b16t2", act: "f32", outliers: 0.03}, {quant: "q2_b16"},
	}
	for _, c := range irtest.Sample(t, 1, cases) { // all kernels are among those of TestEmulatedMatmuls
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			p, err := generate("../../models/demo.yaml", Options{Quant: c.quant, KV: c.kv, Activations: c.act, SparseOutliers: c.outliers, Target: "cuda-emu"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			short := ids[:5]
			want, wantShort := lastLogits(t, p, ids), lastLogits(t, p, short)
			budgets := map[string]int{"": 5, "gemv": 1, "gemv4": 3, "flat_gemm": 7, "flat_gemm32": 64, "gemm": 64, "cublaslt": 7, "wgmma": 64, "wgmma256": 64}
			for _, impl := range append(irtest.Sample(t, 1, implsOf(&p.whole.CUDA.Plan)), "") { // "": as it is chosen; TestEmulatedMatmuls has all
				m := emulatedWith(t, p, using(impl))
				ids, want := ids, want
				if budgets[impl] < 4 {
					ids, want = short, wantShort
				}
				got := lastRow(t, m, ids, engine.Options{MaxTokens: budgets[impl], Context: 64, Threads: 1})
				worst, largest := 0.0, 0.0
				for i, w := range want {
					worst, largest = math.Max(worst, math.Abs(float64(got[i])-w)), math.Max(largest, math.Abs(w))
				}
				if limit := tolerance(impl) * largest; !(worst <= limit) {
					t.Errorf("%s, %d tokens a step: logits differ by %.2e from the interpreter, want at most %.2e", impl, budgets[impl], worst, limit)
				}
			}
		})
	}
}

// TestCUDALaunches: a layer of a decoder like Llama takes five launches for one
// token: of the kernels that one token of one sequence runs.
func TestCUDALaunches(t *testing.T) {
	t.Parallel()
	models := []string{"../../models/demo.yaml"}
	for _, shape := range irtest.Sample(t, 1, []string{"135m", "1b", "7b"}) {
		dir := filepath.Join(t.TempDir(), shape)
		runIn(t, "../..", "go", "run", "./tools/gen/shapemodel", "-shape", shape, dir)
		models = append(models, dir)
	}
	for _, spec := range models {
		for _, quant := range []string{"f16", "q4_b64"} {
			p, err := generate(spec, Options{Quant: quant, Target: "cuda"})
			if err != nil {
				t.Fatal(err)
			}
			p.set.Close()
			if p.whole.CUDA.Regions != 5 {
				t.Errorf("%s, %s: %d launches a layer, want 5", filepath.Base(spec), quant, p.whole.CUDA.Regions)
			}
		}
	}
}

// lastLogits are the interpreter's for the last of some ids.
func lastLogits(t *testing.T, p *Program, ids []int32) []float64 {
	t.Helper()
	step := &interp.Step{OutRows: []int{len(ids) - 1}}
	for _, id := range ids {
		step.IDs = append(step.IDs, int(id))
	}
	values := interp.NewWeights(p.Module, valuesOf(p.set))
	results, err := interp.Run(p.Module, p.Module.Graphs[0].Name, step, values, interp.NewStates())
	if err != nil {
		t.Fatal(err)
	}
	return results[0].F
}

// lastRow reads ids and gives the logits behind the last.
func lastRow(t *testing.T, m engine.Model, ids []int32, opt engine.Options) []float32 {
	t.Helper()
	e, err := engine.Open(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.AddQuery(engine.Query{Tokens: ids}); err != nil {
		t.Fatal(err)
	}
	for {
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(results) == 1 && results[0].Ready {
			return append([]float32(nil), results[0].Row(0, 0)...)
		}
	}
}
