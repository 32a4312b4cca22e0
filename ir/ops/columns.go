package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Split splits a value by columns.
var Split = &ir.OpDef{
	Name: "split",
	Doc: "Splits the columns into ranges of the given sizes, one result each. With panel=n the columns of the results are interleaved instead: n of the " +
		"first result, n of the second, and so on, with each result padded to a multiple of n (the order of the transform interleave, with n = 16).",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs: []ir.AttrDef{
		{Name: "sizes", Kind: ir.IntsAttr, Required: true, Doc: "columns of each result"},
		{Name: "panel", Kind: ir.IntAttr, Default: 0, Doc: "interleaved columns; 0: not interleaved"},
	},
	Traits: ir.RowWise | ir.TileLocal,
	Infer:  inferSplit,
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		var out []*tensor.Tensor
		for i, n := range o.Ints("sizes") {
			part := tensor.New(tensor.F32, in[0].Shape[0], n)
			for t := range in[0].Shape[0] {
				for c := range n {
					row(part, t)[c] = row(in[0], t)[SplitColumn(o, i, c)]
				}
			}
			out = append(out, part)
		}
		return out, nil
	},
}

// SplitColumn returns the column of split's argument that is column c of result i.
func SplitColumn(o *ir.Op, i, c int) int {
	sizes := o.Ints("sizes")
	if panel := o.Int("panel"); panel > 0 {
		return (c/panel*len(sizes)+i)*panel + c%panel
	}
	for _, n := range sizes[:i] {
		c += n
	}
	return c
}

func inferSplit(o *ir.Op) ([]ir.Type, error) {
	x, err := matrix(o.Args[0])
	if err != nil {
		return nil, err
	}
	var out []ir.Type
	sum, sizes, panel := 0, o.Ints("sizes"), o.Int("panel")
	for _, n := range sizes {
		if n < 1 || n > x.Cols() {
			return nil, fmt.Errorf("size %d is not between 1 and the %d columns of %s", n, x.Cols(), o.Args[0])
		}
		if panel > 0 && n != sizes[0] {
			return nil, fmt.Errorf("sizes %v differ, but panel=%d requires equal sizes", sizes, panel)
		}
		out = append(out, f32(x.Rows(), ir.N(n)))
		if panel > 0 {
			n = (n + panel - 1) / panel * panel
		}
		sum += n
	}
	if sum != x.Cols() || panel < 0 || panel > x.Cols() {
		return nil, fmt.Errorf("sizes %v with panel=%d need %d columns but %s has %d", sizes, panel, sum, o.Args[0], x.Cols())
	}
	return out, nil
}

// Concat concatenates columns.
var Concat = &ir.OpDef{
	Name:   "concat",
	Doc:    "Concatenates the columns of all arguments.",
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
