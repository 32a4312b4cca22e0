package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// AllReduce sums over the ranks of a par region. Its Eval reads one tensor per rank and
// returns the common result.
var AllReduce = &ir.OpDef{
	Name:   "all_reduce",
	Doc:    "Sums x over the ranks of the enclosing par region; every rank receives the result. In the program of one rank, which has no regions, ranks states their number.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs:  []ir.AttrDef{{Name: "ranks", Kind: ir.IntAttr, Default: 0, Doc: "outside a par region: number of ranks"}},
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

// AllGather concatenates the ranks' columns. Its Eval reads one tensor per rank and
// returns the common result.
var AllGather = &ir.OpDef{
	Name: "all_gather",
	Doc: "Concatenates the columns of x of all ranks of the enclosing par region in rank order; every rank receives the result. " +
		"With bounds, each rank's columns start at its own bound; columns that several ranks have must be equal. " +
		"It may also occur in the program of one rank, which has no regions.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs: []ir.AttrDef{
		{Name: "ranks", Kind: ir.IntAttr, Required: true, Doc: "number of ranks"},
		{Name: "bounds", Kind: ir.IntsAttr, Doc: "first column of each rank in the result and one past its last, rank by rank"},
	},
	Traits: ir.Collective,
	Infer:  inferGather,
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		if !o.Has("bounds") {
			return evalConcat(o, in)
		}
		out := tensor.New(tensor.F32, in[0].Shape[0], o.Results[0].Type.Cols())
		for t := range out.Shape[0] {
			for m, x := range in {
				copy(row(out, t)[GatherAt(o, m):], row(x, t))
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}

// GatherAt returns the first column of a rank's columns in the result.
func GatherAt(o *ir.Op, tpRank int) int {
	if o.Has("bounds") {
		return o.Ints("bounds")[2*tpRank]
	}
	return tpRank * o.Args[0].Type.Cols()
}

func inferGather(o *ir.Op) ([]ir.Type, error) {
	x, err := matrix(o.Args[0])
	if err != nil {
		return nil, err
	}
	n := o.Int("ranks")
	if n < 1 || n > 1<<16 {
		return nil, fmt.Errorf("ranks=%d, expected 1 to %d", n, 1<<16)
	}
	if !o.Has("bounds") {
		return one(f32(x.Rows(), ir.N(x.Cols()*n)), nil)
	}
	bounds, end := o.Ints("bounds"), 0
	if len(bounds) != 2*n {
		return nil, fmt.Errorf("bounds has %d numbers for %d ranks", len(bounds), n)
	}
	for i := 0; i < len(bounds); i += 2 {
		lo, hi := bounds[i], bounds[i+1]
		if lo < 0 || lo > end || hi <= end || hi-lo != x.Cols() {
			return nil, fmt.Errorf("columns %d..%d of rank %d: its %s has %d columns, and columns up to %d are assigned", lo, hi, i/2, o.Args[0], x.Cols(), end)
		}
		end = hi
	}
	return one(f32(x.Rows(), ir.N(end)), nil)
}

// Send sends rows to another rank, which has a matching Recv in the same step. The
// interpreter implements it.
var Send = &ir.OpDef{
	Name:   "send",
	Doc:    "Sends x to another rank of a partitioned model, at the boundary of two pipeline stages. It may occur only in the program of one rank.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs:  []ir.AttrDef{{Name: "to", Kind: ir.IntAttr, Required: true, Doc: "receiving rank"}},
	Traits: ir.Collective | ir.Writes,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		_, err := matrix(o.Args[0])
		return nil, err
	},
}

// Recv receives the rows that another rank sends. The interpreter implements it.
var Recv = &ir.OpDef{
	Name:   "recv",
	Doc:    "Receives the rows that another rank sends, as many as `rows` has. It may occur only in the program of one rank.",
	Params: []ir.ParamDef{param("rows", "any value with that number of rows", value)},
	Attrs: []ir.AttrDef{
		{Name: "from", Kind: ir.IntAttr, Required: true, Doc: "sending rank"},
		{Name: "cols", Kind: ir.IntAttr, Required: true, Doc: "columns of the result"},
	},
	Traits: ir.Collective | ir.Writes,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		if n := o.Int("cols"); n < 1 || n > 1<<24 {
			return nil, fmt.Errorf("cols=%d, expected 1 to %d", n, 1<<24)
		}
		return one(f32(o.Args[0].Type.Rows(), ir.N(o.Int("cols"))), nil)
	},
}
