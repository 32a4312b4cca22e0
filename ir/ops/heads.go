package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// JoinHeads concatenates the columns of each head of two values.
var JoinHeads = &ir.OpDef{
	Name: "join_heads",
	Doc: "Concatenates, for each head h, the columns of head h of a and those of head h of b. With b_heads=1, b is one head that is appended to every head of a: " +
		"the rotary part of a key in multi-head latent attention (DeepSeek-V2, §2.1.3).",
	Params: []ir.ParamDef{param("a", "f32[T, heads·A]", value), param("b", "f32[T, b_heads·B]", value)},
	Attrs: []ir.AttrDef{
		{Name: "heads", Kind: ir.IntAttr, Required: true, Doc: "heads of a and of the result"},
		{Name: "b_heads", Kind: ir.IntAttr, Default: 1, Doc: "heads of b: 1 or heads"},
	},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		for _, a := range o.Args {
			if _, err := matrix(a); err != nil {
				return nil, err
			}
		}
		heads, bHeads := o.Int("heads"), o.Int("b_heads")
		a, err := headWidth(o.Args[0], heads)
		if err != nil {
			return nil, err
		}
		if bHeads != 1 && bHeads != heads {
			return nil, fmt.Errorf("b_heads=%d, expected 1 or heads=%d", bHeads, heads)
		}
		b, err := headWidth(o.Args[1], bHeads)
		if err != nil {
			return nil, err
		}
		return one(f32(o.Args[0].Type.Rows(), ir.N(heads*(a+b))), sameRows(o.Args[0], o.Args[1]))
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		heads, bHeads := o.Int("heads"), o.Int("b_heads")
		a, b := in[0].Shape[1]/heads, in[1].Shape[1]/bHeads
		out := tensor.New(tensor.F32, in[0].Shape[0], heads*(a+b))
		for t := range out.Shape[0] {
			for h := range heads {
				to := row(out, t)[h*(a+b):]
				copy(to, row(in[0], t)[h*a:][:a])
				copy(to[a:], row(in[1], t)[h%bHeads*b:][:b])
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}

// HeadCols selects columns of each head.
var HeadCols = &ir.OpDef{
	Name:   "head_cols",
	Doc:    "Concatenates columns lo ≤ c < hi of each head.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs: []ir.AttrDef{
		{Name: "heads", Kind: ir.IntAttr, Required: true, Doc: "number of heads in the columns"},
		{Name: "lo", Kind: ir.PerLayerInt, Required: true, Doc: "first column of each head"},
		{Name: "hi", Kind: ir.PerLayerInt, Required: true, Doc: "one past the last column of each head; hi − lo is the same in all layers"},
	},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		width, err := headWidth(o.Args[0], o.Int("heads"))
		cols := o.IntAt("hi", 0) - o.IntAt("lo", 0)
		if a, b := len(o.Ints("lo")), len(o.Ints("hi")); a != b && err == nil {
			err = fmt.Errorf("%d entries of lo and %d of hi", a, b)
		}
		for i := range o.Ints("lo") {
			lo, hi := o.IntAt("lo", i), o.IntAt("hi", i)
			switch {
			case err != nil:
				return nil, err
			case lo < 0 || lo >= hi || hi > width:
				err = fmt.Errorf("columns %d..%d of heads of %d", lo, hi, width)
			case hi-lo != cols:
				err = fmt.Errorf("%d columns in layer %d, and %d in the first", hi-lo, i, cols)
			}
		}
		return one(f32(x.Rows(), ir.N(o.Int("heads")*cols)), err)
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		heads, lo, hi := o.Int("heads"), o.IntAt("lo", 0), o.IntAt("hi", 0)
		width := in[0].Shape[1] / heads
		out := tensor.New(tensor.F32, in[0].Shape[0], heads*(hi-lo))
		for t := range out.Shape[0] {
			for h := range heads {
				copy(row(out, t)[h*(hi-lo):], row(in[0], t)[h*width+lo:h*width+hi])
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}
