package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// AllReduce sums over the members of a par region. Its Eval takes one tensor
// per member and gives what every member gets.
var AllReduce = &ir.OpDef{
	Name:   "all_reduce",
	Doc:    "The sum of x over the members of the enclosing par region; every member gets it.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Traits: ir.Collective,
	Infer:  func(o *ir.Op) ([]ir.Type, error) { return one(matrix(o.Args[0])) },
	Eval: func(_ *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := in[0].Clone()
		for _, x := range in[1:] {
			for i, v := range x.F {
				out.F[i] += v
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}

// AllGather joins the members' columns. Its Eval takes one tensor per member
// and gives what every member gets.
var AllGather = &ir.OpDef{
	Name:   "all_gather",
	Doc:    "The columns of x of all members of the enclosing par region side by side, in order of members; every member gets them.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs:  []ir.AttrDef{{Name: "members", Kind: ir.IntAttr, Required: true, Doc: "how many members the par region has"}},
	Traits: ir.Collective,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		n := o.Int("members")
		if n < 1 || n > 1<<16 {
			return nil, fmt.Errorf("members=%d, expected 1 to %d", n, 1<<16)
		}
		return one(f32(x.Rows(), ir.N(x.Cols()*n)), nil)
	},
	Eval: evalConcat,
}
