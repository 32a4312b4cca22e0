package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// SelectRows chooses the rows of a state that a token attends to. The interpreter
// implements it.
var SelectRows = &ir.OpDef{
	Name: "select_rows",
	Doc: "The positions of the top visible rows with the greatest scores, ascending, as numbers; the rest of the row is +∞. " +
		"The score of a row is Σ w[h] · max(0, q[h]·k) over the heads h, in order (the lightning indexer of DeepSeek-V3.2, §2.1). " +
		"Rows at positions ≤ the token's own are visible; with every m, only those at positions p where m divides p + 1. " +
		"For ties the lower position is chosen, whatever rows the sequence has beyond the token. " +
		"If at most top rows are visible, all are chosen. The result is the argument selected of attention.",
	Params: []ir.ParamDef{
		param("q", "f32[T, heads·dim]", value),
		param("w", "f32[T, heads]", value),
		param("rows", "state with the field k: [1, dim]", state),
	},
	Attrs: []ir.AttrDef{
		{Name: "heads", Kind: ir.IntAttr, Required: true, Doc: "heads of q"},
		{Name: "top", Kind: ir.IntAttr, Required: true, Doc: "number of rows that are chosen"},
		{Name: "every", Kind: ir.IntAttr, Default: 1, Doc: "distance of the visible rows"},
	},
	Traits: ir.Reads | ir.Root,
	Infer:  inferSelectRows,
}

func inferSelectRows(o *ir.Op) ([]ir.Type, error) {
	q, err := matrix(o.Args[0])
	if err != nil {
		return nil, err
	}
	heads, top := o.Int("heads"), o.Int("top")
	dim, err := headWidth(o.Args[0], heads)
	if err != nil {
		return nil, err
	}
	if err := rowsLike(o.Args[0], o.Args[1], heads); err != nil {
		return nil, err
	}
	st := o.Args[2].State
	if f, ok := st.Field("k"); !ok || st.Fixed || st.Source || len(f.Shape) != 2 || f.Shape[0] != 1 || f.Shape[1] != dim {
		return nil, fmt.Errorf("%s is %s, expected field k of shape [1, %d]", o.Args[2], st, dim)
	}
	if top < 1 || o.Int("every") < 1 {
		return nil, fmt.Errorf("top=%d, every=%d, expected at least 1", top, o.Int("every"))
	}
	return one(f32(q.Rows(), ir.N(top)), nil)
}

// rowsLike checks that b has the given number of columns and as many rows as a.
func rowsLike(a, b ir.Arg, cols int) error {
	t, err := matrix(b)
	if err != nil {
		return err
	}
	if t.Cols() != cols {
		return fmt.Errorf("%s has %d columns, expected %d", b, t.Cols(), cols)
	}
	return sameRows(a, b)
}

// Fill is a row of equal numbers.
var Fill = &ir.OpDef{
	Name:   "fill",
	Doc:    "A row of cols numbers, all equal to value, for each row of x, which is not read otherwise.",
	Params: []ir.ParamDef{param("x", "f32[T, D], for its number of rows", value)},
	Attrs: []ir.AttrDef{
		{Name: "cols", Kind: ir.IntAttr, Required: true, Doc: "columns of the result"},
		{Name: "value", Kind: ir.FloatAttr, Default: 0.0, Doc: "the number"},
	},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err == nil && o.Int("cols") < 1 {
			err = fmt.Errorf("cols=%d, expected at least 1", o.Int("cols"))
		}
		return one(f32(x.Rows(), ir.N(o.Int("cols"))), err)
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := tensor.New(tensor.F32, in[0].Shape[0], o.Int("cols"))
		for i := range out.F {
			out.F[i] = o.Float("value")
		}
		return []*tensor.Tensor{out}, nil
	},
}
