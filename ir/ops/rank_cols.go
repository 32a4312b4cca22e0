package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// RankCols selects each rank's columns of a value that all ranks have. The interpreter
// implements it, because the result depends on the rank.
var RankCols = &ir.OpDef{
	Name: "rank_cols",
	Doc: "Selects each rank's columns lo ≤ c < hi of a value that is the same on all ranks of the enclosing par region. " +
		"Narrower parts are padded with zeros to the width of the widest part.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs:  []ir.AttrDef{{Name: "bounds", Kind: ir.IntsAttr, Required: true, Doc: "lo and hi of each rank, in rank order"}},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		bounds, most := o.Ints("bounds"), 0
		if len(bounds) == 0 || len(bounds)%2 != 0 {
			return nil, fmt.Errorf("bounds has %d numbers, expected lo and hi of each rank", len(bounds))
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
		return nil, fmt.Errorf("the result of rank_cols depends on the rank; use RankPart")
	},
}

// RankPart returns the result of rank_cols for one rank.
func RankPart(o *ir.Op, x *tensor.Tensor, tpRank int) *tensor.Tensor {
	lo, hi := o.Ints("bounds")[2*tpRank], o.Ints("bounds")[2*tpRank+1]
	out := tensor.New(tensor.F32, x.Shape[0], o.Results[0].Type.Cols())
	for t := range x.Shape[0] {
		copy(row(out, t), row(x, t)[lo:hi])
	}
	return out
}
