package passes

import (
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/templates"
)

// SelectKernels annotates each matmul with its implementation for each row
// count (FlashDecoding++, §5).
var SelectKernels = &Pass{
	Name:  "select-kernels",
	Brief: "picks kernels by rows",
	Doc:   "Annotates each matmul with its implementation (GEMV, flat GEMM or GEMM) for each row count, from the measured profile of the device, or from a roofline estimate without a profile. All legal candidates are emitted; the annotation is the default of the dispatch table.",
	Run:   selectKernels,
}

func selectKernels(env *Env, m *ir.Module) error {
	for _, g := range m.Graphs {
		for _, b := range g.Blocks() {
			for _, op := range b.Ops {
				if root := rootOf(op); root != nil && root.Def.Name == "matmul" && b != bodyOfFuse(g, root) {
					op.Annotations.Set(kernelAnnotation(env, root))
				}
			}
		}
	}
	return nil
}

// rootOf returns the root of a region, or the op itself if it is in none.
func rootOf(op *ir.Op) *ir.Op {
	if op.Def.Name != "fuse" {
		if op.Def.Is(ir.Root) {
			return op
		}
		return nil
	}
	for _, o := range op.Body.Ops {
		if o.Def.Is(ir.Root) {
			return o
		}
	}
	return nil
}

// bodyOfFuse returns the body of the region that contains the op, if there is
// one: annotations belong to the region.
func bodyOfFuse(g *ir.Graph, root *ir.Op) *ir.Block {
	for _, f := range g.FindOps("fuse") {
		if f.Body.Index(root) >= 0 {
			return f.Body
		}
	}
	return nil
}

func kernelAnnotation(env *Env, root *ir.Op) ir.Annotation {
	w := root.Args[1]
	n, k, dt := w.Type.Shape[0].N, w.Type.Cols(), w.Type.Elem
	kernels := env.Kernels.CandidatesFor("matmul", dt, root.Args[0].Type.Elem.String())
	if len(kernels) == 0 { // no kernel for unrounded activations: the pass quantize was skipped
		kernels = env.Kernels.Candidates("matmul", dt)
	}
	var cases []Case
	ok := false
	if env.Profile != nil {
		var impls []string
		for _, c := range kernels {
			impls = append(impls, c.Impl)
		}
		cases, ok = env.Profile.Choose(n, k, dt, impls)
	}
	if !ok {
		cases = roofline(dt, kernels)
	}
	annotation := ir.Annotation{Name: "kernel"}
	for i, c := range cases {
		a := ir.AnnotationArg{Val: c.Impl}
		if i > 0 {
			a.Of, a.From = "rows", c.Rows
		}
		annotation.Args = append(annotation.Args, a)
	}
	return annotation
}

// roofline returns the choice without a measurement: each kernel from the row
// count in its header. With one row, the bytes of the weights are the limit,
// and GEMV and flat GEMM both read them once; with a second row GEMV reads them
// twice. Unpacking each panel once pays when it serves so many rows that
// arithmetic is the limit: from about 128 rows for types with codes to decode
// and for bf16, never for plain 8-bit codes. Measured
// (docs/benchmarks/kernels.md): on Zen 4 from 48 to 64 rows for q4_b64, from 96
// to 256 for q4_b32, never for q8_b32t2; on an Intel Xeon from 32 to 128 rows
// for bf16.
func roofline(dt tensor.DType, kernels []*templates.Kernel) []Case {
	var cases []Case
	for _, k := range kernels {
		if rows := k.From(dt); rows > 0 {
			cases = append(cases, Case{rows, k.Impl})
		}
	}
	if len(cases) == 0 && len(kernels) > 0 {
		cases = []Case{{1, kernels[0].Impl}}
	}
	return cases
}
