package ops

import (
	"math"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Softmax is the softmax of each row.
var Softmax = &ir.OpDef{
	Name:   "softmax",
	Doc:    "y = exp(x − max x) / Σ exp(x − max x), row by row",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Traits: ir.RowWise,
	Infer:  func(o *ir.Op) ([]ir.Type, error) { return one(matrix(o.Args[0])) },
	Eval: func(_ *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := in[0].Clone()
		for t := range out.Shape[0] {
			SoftmaxRow(row(out, t))
		}
		return []*tensor.Tensor{out}, nil
	},
}

// SoftmaxRow replaces scores by their softmax; −∞ is masked out. At least one score must
// be finite.
func SoftmaxRow(x []float64) {
	top := math.Inf(-1)
	for _, v := range x {
		top = math.Max(top, v)
	}
	sum := 0.0
	for i, v := range x {
		x[i] = math.Exp(v - top)
		sum += x[i]
	}
	scaleBy(x, 1/sum)
}

// Argmax returns the column of the greatest element of each row.
var Argmax = &ir.OpDef{
	Name:   "argmax",
	Doc:    "The column of each row's greatest element; for ties the first one.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		return one(ir.T(tensor.I32, x.Rows()), nil)
	},
	Eval: func(_ *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := tensor.New(tensor.I32, in[0].Shape[0])
		for t := range out.F {
			x := row(in[0], t)
			for i, v := range x {
				if v > x[int(out.F[t])] {
					out.F[t] = float64(i)
				}
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}
