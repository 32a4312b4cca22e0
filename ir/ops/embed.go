package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Embed looks up rows of a table.
var Embed = &ir.OpDef{
	Name:   "embed",
	Doc:    "y[t] = w[ids[t]]. Looks up embeddings of tokens, learned positions or token types. An id outside the table is an error.",
	Params: []ir.ParamDef{param("ids", "i32[T]", value), param("w", "[V, D]", weight)},
	Traits: ir.RowWise | ir.Root,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		n, err := indices(o.Args[0])
		if err != nil {
			return nil, err
		}
		w := o.Args[1]
		if !w.Type.IsMatrix() {
			return nil, fmt.Errorf("%s is %s, expected [ids, columns]", w, w.Type)
		}
		return one(f32(n, w.Type.Shape[1]), nil)
	},
	Eval: evalGather(0, 1),
}

// Rows selects rows of a value.
var Rows = &ir.OpDef{
	Name:   "rows",
	Doc:    "y[r] = x[idx[r]]. Selects rows, such as the output rows.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value), param("idx", "i32[R]", value)},
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		n, err := indices(o.Args[1])
		return one(f32(n, x.Shape[1]), err)
	},
	Eval: evalGather(1, 0),
}

// evalGather selects the rows of argument table by the indices in argument idx.
func evalGather(idx, table int) func(*ir.Op, []*tensor.Tensor) ([]*tensor.Tensor, error) {
	return func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		w := in[table]
		n := len(in[idx].F)
		out := tensor.New(tensor.F32, n, w.Shape[1])
		for t, id := range in[idx].F {
			if id < 0 || int(id) >= w.Shape[0] {
				return nil, fmt.Errorf("op %s: index %d of row %d is outside the %d rows of %s", o.Def.Name, int(id), t, w.Shape[0], o.Args[table])
			}
			copy(row(out, t), row(w, int(id)))
		}
		return []*tensor.Tensor{out}, nil
	}
}
