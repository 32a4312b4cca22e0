package compiler

import (
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/runtime/engine"
)

// using makes each product use the first of some implementations that it has.
func using(impls ...string) func(d *cuda.Device) {
	return func(d *cuda.Device) {
		d.Profile = &dispatch.Profile{Format: dispatch.Format}
		for _, s := range d.Plan.Matmuls {
			same := func(o dispatch.Shape) bool { return o.N == s.N && o.K == s.K && o.DType == s.DType }
			has := func(impl string) bool { return slices.Contains(s.Impls, impl) }
			if i := slices.IndexFunc(impls, has); i >= 0 && !slices.ContainsFunc(d.Profile.Shapes, same) {
				d.Profile.Shapes = append(d.Profile.Shapes, dispatch.Shape{N: s.N, K: s.K, DType: s.DType, Rules: []dispatch.Rule{{Rows: 1, Impl: impls[i]}}})
			}
		}
	}
}

// tolerance is by how much an implementation's logits may differ from the
// interpreter's, relative to the largest: numbers round the other way to eight
// bits, and more of them where rows and weights are rounded to 16 bits in front
// of a product.
func tolerance(impl string) float64 {
	if roundsToF16(impl) {
		return 8e-2
	}
	return 4e-2
}

// roundsToF16 reports whether an implementation rounds activations to f16, as those
// for many rows do (docs/cuda.md).
func roundsToF16(impl string) bool {
	return slices.Contains([]string{"gemm", "cublaslt", "wgmma", "wgmma256"}, impl)
}

// implsOf lists the implementations of the products of a plan.
func implsOf(plan *manifest.CUDA) (impls []string) {
	for _, s := range plan.Matmuls {
		for _, impl := range s.Impls {
			if !slices.Contains(impls, impl) {
				impls = append(impls, impl)
			}
		}
	}
	return impls
}

// TestCUDAImpls: every product has the implementations that its type allows.
func TestCUDAImpls(t *testing.T) {
	t.Parallel()
	all := []string{"gemv", "flat_gemm", "flat_gemm32", "flat_gemm64", "gemm", "cublaslt", "wgmma", "wgmma256"}
	for quant, want := range map[string][]string{"f32": {"gemv", "gemv4"}, "f16": all, "q4_b64": all} {
		p, err := generate("../../models/demo.yaml", Options{Quant: quant, Target: "cuda"})
		if err != nil {
			t.Fatal(err)
		}
		p.set.Close()
		for _, s := range p.whole.CUDA.Plan.Matmuls {
			if !slices.Equal(s.Impls, want) {
				t.Errorf("%s: %s has %v, want %v", quant, s.Name, s.Impls, want)
			}
		}
		if len(p.whole.CUDA.Plan.Matmuls) != 5 {
			t.Errorf("%s: %d matmuls", quant, len(p.whole.CUDA.Plan.Matmuls))
		}
	}
}

// TestKVAppendSync: all threads have stored a row in the KV cache before an op
// behind kv_append writes where the row was, here a scale in place.
func TestKVAppendSync(t *testing.T) {
	t.Parallel()
	p, err := generate("../../spec/testdata/families/modernbert_classes_mean", Options{Quant: "f32", Target: "cuda"})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	for _, u := range p.whole.CUDA.Units {
		_, behind, found := strings.Cut(u.Source, "* 0.0f;") // the scale
		if !found {
			continue
		}
		puts := strings.Split(u.Source[:len(u.Source)-len(behind)], "ifl_kv_put_f32(")
		if n := len(puts) - 1; n != 2 || !strings.Contains(puts[n], "g.sync();") {
			t.Errorf("%s: %d rows are stored, expected 2 and a barrier behind them:\n%s", u.Name, n, u.Source)
		}
		return
	}
	t.Error("no unit stores rows and scales them")
}

// TestEmulatedCapture: no kernel loads its code during a capture, neither one of the
// model's nor cuBLASLt's, when a step has fewer rows than the graph that its shape leads
// to. Replayed graphs give the results of plain launches.
func TestEmulatedCapture(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, impl := range irtest.Sample(t, 1, []string{"flat_gemm", "cublaslt"}) {
		p, err := generate("../../models/demo.yaml", Options{Quant: "q8_b32", Target: "cuda-emu"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		from4 := func(d *cuda.Device) { // three rows use gemv, the graph of four uses impl
			using(impl)(d)
			for i := range d.Profile.Shapes {
				d.Profile.Shapes[i].Rules = []dispatch.Rule{{Rows: 1, Impl: "gemv"}, {Rows: 4, Impl: impl}}
			}
		}
		graphs := afterPrompts(t, emulatedWith(t, p, from4), 3, 4, 4) // first: the process keeps loaded kernels
		if plain := afterPrompts(t, emulatedWith(t, p, func(d *cuda.Device) { from4(d); d.Graphs = false }), 4); !slices.Equal(graphs, plain) {
			t.Errorf("%s: graphs change results", impl)
		}
	}
}

// afterPrompts gives the logits of a prompt's last token after prompts of the given lengths,
// each in a step of its own.
func afterPrompts(t *testing.T, m engine.Model, lengths ...int) (out []float32) {
	t.Helper()
	e, err := engine.Open(m, engine.Options{MaxOutRows: 1, Context: 64, MaxTokens: 16, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, n := range lengths {
		id, err := e.AddQuery(engine.Query{Tokens: prompt(n, 3)})
		if err != nil {
			t.Fatal(err)
		}
		results, err := e.Infer(t.Context())
		if err != nil || len(results) != 1 {
			t.Fatal(results, err)
		}
		out = slices.Clone(results[0].Row(0, 0))
		e.Remove(id)
	}
	return out
}
