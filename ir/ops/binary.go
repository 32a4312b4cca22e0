package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Elementwise ops of two arguments. The second one may be a weight vector, which
// applies to every row, or have one column, which applies to every column.
var (
	Add = binary("add", "y = a + b", "{0} + {1}", ir.Commutative, func(a, b float64) float64 { return a + b })
	Sub = binary("sub", "y = a − b", "{0} - {1}", 0, func(a, b float64) float64 { return a - b })
	Mul = binary("mul", "y = a · b", "{0} * {1}", ir.Commutative, func(a, b float64) float64 { return a * b })
	Div = binary("div", "y = a / b", "{0} / {1}", 0, func(a, b float64) float64 { return a / b })
)

func binary(name, doc, expr string, traits ir.Trait, f func(a, b float64) float64) *ir.OpDef {
	return &ir.OpDef{
		Name: name, Doc: doc, Expr: expr, Traits: pointwise | traits,
		Params: []ir.ParamDef{
			param("a", "f32[T, D]", value),
			param("b", "f32[T, D], f32[T, 1], or a weight [D] or [1]; [T, 1] and [1] apply to every column, a weight to every row", either),
		},
		Infer: inferBinary,
		Eval: func(_ *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
			out, b, cols := in[0].Clone(), in[1].F, in[0].Shape[1]
			each := cols / in[1].Shape[len(in[1].Shape)-1] // columns that use the same element
			for i, x := range out.F {
				out.F[i] = f(x, b[i/each%len(b)])
			}
			return []*tensor.Tensor{out}, nil
		},
	}
}

func inferBinary(o *ir.Op) ([]ir.Type, error) {
	a, b := o.Args[0], o.Args[1]
	t, err := matrix(a)
	if err != nil {
		return nil, err
	}
	if b.Kind == ir.Weight {
		if vector(b, 1) == nil {
			return one(t, nil)
		}
		return one(t, vector(b, t.Cols()))
	}
	if column, err := matrix(b); err == nil && column.Cols() == 1 {
		return one(t, sameRows(a, b))
	}
	if !b.Type.Equal(t) {
		hint := ""
		if t.Cols() == 1 {
			hint = "; the operand with one column must be the second"
		}
		return nil, fmt.Errorf("%s is %s but %s is %s; they must be equal%s", a, a.Type, b, b.Type, hint)
	}
	return one(t, nil)
}
