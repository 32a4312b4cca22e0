package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Matmul is a linear layer without bias.
var Matmul = &ir.OpDef{
	Name: "matmul",
	Doc: "y = x · wᵀ. x may be quantized activations (a8_b16, a8_b32, a8_b64) or bf16. With slices=n the columns of x are n slices of K columns, each multiplied by w, " +
		"and y concatenates the n results. w is read once for all slices.",
	Params: []ir.ParamDef{param("x", "f32, a8_b16, a8_b32, a8_b64 or bf16 [T, slices·K]", value), param("w", "[N, K]", weight)},
	Attrs:  []ir.AttrDef{{Name: "slices", Kind: ir.IntAttr, Default: 1, Doc: "number of column slices that are multiplied by w"}},
	Traits: ir.RowWise | ir.Root,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, w := o.Args[0], o.Args[1]
		if e := x.Type.Elem; !x.Type.IsMatrix() || e != tensor.F32 && !rounded(e) {
			return nil, fmt.Errorf("%s is %s, expected f32, a8_b16, a8_b32, a8_b64 or bf16 [rows, columns]", x, x.Type)
		}
		slices := o.Int("slices")
		if slices < 1 {
			return nil, fmt.Errorf("slices=%d, expected at least 1", slices)
		}
		if !w.Type.IsMatrix() || slices == 1 && w.Type.Cols() != x.Type.Cols() {
			return nil, fmt.Errorf("%s is %s but %s is %s; the last sizes must agree", x, x.Type, w, w.Type)
		}
		if w.Type.Cols()*slices != x.Type.Cols() {
			return nil, fmt.Errorf("%s has %d columns, expected %d slices of the %d columns of %s", x, x.Type.Cols(), slices, w.Type.Cols(), w)
		}
		if slices > 1 && x.Op != nil && x.Op.Def == QuantizeAct && x.Op.Int("outliers") > 0 {
			return nil, fmt.Errorf("%s is quantized with outliers, which cannot be combined with slices=%d; quantize it without outliers", x, slices)
		}
		if slices > 1 {
			return one(f32(x.Type.Rows(), ir.N(slices*w.Type.Rows().N)), nil)
		}
		return one(f32(x.Type.Rows(), w.Type.Rows()), nil)
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		x, w, slices := in[0], in[1], o.Int("slices")
		rows, k := w.Shape[0], w.Shape[1]
		out := tensor.New(tensor.F32, x.Shape[0], slices*rows)
		for t := range x.Shape[0] {
			for i := range slices * rows {
				slice := row(x, t)[i/rows*k:][:k]
				out.F[t*slices*rows+i] = dot(slice, row(w, i%rows))
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
