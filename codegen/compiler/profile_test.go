package compiler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

func TestShippedProfiles(t *testing.T) {
	t.Parallel()
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range templates.Profiles() {
		p, err := dispatch.Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		if p.Machine == nil || p.Device == "" {
			t.Fatalf("%s: no device", name)
		}
		found, got, err := shipped(templates.Profiles(), *p.Machine)
		if err != nil || found != name || got == nil {
			t.Errorf("%s is not found on its own machine: %q, %v", name, found, err)
		}
		other := *p.Machine
		other.Threads++
		if _, got, err := shipped(templates.Profiles(), other); got != nil && got.Machine.Threads != other.Threads || err != nil {
			t.Errorf("%s is used with another number of threads: %v", name, err)
		}
		for _, s := range p.Shapes {
			dt, ok := tensor.ParseDType(s.DType)
			if !ok {
				t.Fatalf("%s: type %q", name, s.DType)
			}
			matmul := manifest.Matmul{Name: "shape", N: s.N, K: s.K, DType: s.DType}
			for _, k := range cat.Candidates("matmul", dt) {
				matmul.Impls, matmul.Rows = append(matmul.Impls, k.Impl), append(matmul.Rows, -1)
			}
			if _, err := dispatch.Table([]manifest.Matmul{matmul}, p); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRulesOfAnAnnotation: an annotation names each implementation once.
func TestRulesOfAnAnnotation(t *testing.T) {
	t.Parallel()
	p := measured{&dispatch.Profile{Shapes: []dispatch.Shape{{N: 16, K: 32, DType: "f16", Rules: []dispatch.Rule{
		{Rows: 1, Impl: "gemv"}, {Rows: 3, Impl: "flat_gemm"}, {Rows: 64, Impl: "gemm"}, {Rows: 96, Impl: "flat_gemm"}}}}}}
	got, ok := p.Choose(16, 32, tensor.F16, nil)
	want := []passes.Case{{Rows: 1, Impl: "gemv"}, {Rows: 3, Impl: "flat_gemm"}, {Rows: 64, Impl: "gemm"}}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Error(diff, ok)
	}
	if _, ok := p.Choose(16, 33, tensor.F16, nil); ok {
		t.Error("a shape that is not in the profile")
	}
}
