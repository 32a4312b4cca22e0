package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Split cuts columns apart.
var Split = &ir.OpDef{
	Name:   "split",
	Doc:    "Cuts the columns into runs of the given sizes, one result each.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs:  []ir.AttrDef{{Name: "sizes", Kind: ir.IntsAttr, Required: true, Doc: "columns of each result; their sum is D"}},
	Traits: ir.RowWise | ir.TileLocal,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		var out []ir.Type
		sum := 0
		for _, n := range o.Ints("sizes") {
			if n < 1 {
				return nil, fmt.Errorf("size %d is not positive", n)
			}
			sum += n
			out = append(out, f32(x.Rows(), ir.N(n)))
		}
		if sum != x.Cols() {
			return nil, fmt.Errorf("sizes sum to %d but %s has %d columns", sum, o.Args[0], x.Cols())
		}
		return out, nil
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		var out []*tensor.Tensor
		at := 0
		for _, n := range o.Ints("sizes") {
			part := tensor.New(tensor.F32, in[0].Shape[0], n)
			for t := range in[0].Shape[0] {
				copy(row(part, t), row(in[0], t)[at:])
			}
			out = append(out, part)
			at += n
		}
		return out, nil
	},
}

// Concat puts columns side by side.
var Concat = &ir.OpDef{
	Name:   "concat",
	Doc:    "The columns of all arguments side by side.",
	Params: []ir.ParamDef{variadic(param("x", "f32[T, D…]", value))},
	Traits: ir.RowWise | ir.TileLocal,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		sum := 0
		for _, a := range o.Args {
			t, err := matrix(a)
			if err != nil {
				return nil, err
			}
			if err := sameRows(o.Args[0], a); err != nil {
				return nil, err
			}
			sum += t.Cols()
		}
		return one(f32(o.Args[0].Type.Rows(), ir.N(sum)), nil)
	},
	Eval: evalConcat,
}

func evalConcat(_ *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	sum := 0
	for _, x := range in {
		sum += x.Shape[1]
	}
	out := tensor.New(tensor.F32, in[0].Shape[0], sum)
	for t := range in[0].Shape[0] {
		at := 0
		for _, x := range in {
			at += copy(row(out, t)[at:], row(x, t))
		}
	}
	return []*tensor.Tensor{out}, nil
}
