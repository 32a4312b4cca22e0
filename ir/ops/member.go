package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// MemberCols takes each member's columns of a value that all members have. The
// interpreter knows which member it runs.
var MemberCols = &ir.OpDef{
	Name: "member_cols",
	Doc: "Each member's own columns of a value that is the same on all members of the enclosing par region: columns lo up to, not including, hi, " +
		"and zeros behind them where another member takes more.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs:  []ir.AttrDef{{Name: "bounds", Kind: ir.IntsAttr, Required: true, Doc: "lo and hi of each member in turn"}},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		bounds, most := o.Ints("bounds"), 0
		if len(bounds) == 0 || len(bounds)%2 != 0 {
			return nil, fmt.Errorf("bounds has %d numbers, expected lo and hi of each member", len(bounds))
		}
		for i := 0; i < len(bounds); i += 2 {
			lo, hi := bounds[i], bounds[i+1]
			if lo < 0 || lo >= hi || hi > x.Cols() {
				return nil, fmt.Errorf("columns %d..%d of %s, which has %d", lo, hi, o.Args[0], x.Cols())
			}
			most = max(most, hi-lo)
		}
		return one(f32(x.Rows(), ir.N(most)), nil)
	},
	Eval: func(*ir.Op, []*tensor.Tensor) ([]*tensor.Tensor, error) {
		return nil, fmt.Errorf("what member_cols gives hangs on the member: see MemberPart")
	},
}

// MemberPart is what member_cols gives one member.
func MemberPart(o *ir.Op, x *tensor.Tensor, member int) *tensor.Tensor {
	lo, hi := o.Ints("bounds")[2*member], o.Ints("bounds")[2*member+1]
	out := tensor.New(tensor.F32, x.Shape[0], o.Results[0].Type.Cols())
	for t := range x.Shape[0] {
		copy(row(out, t), row(x, t)[lo:hi])
	}
	return out
}
