package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Lora adds the adapters that are loaded at run time to a matmul.
var Lora = &ir.OpDef{
	Name: "lora",
	Doc: "y' = y + x · (B·A)ᵀ on the rows of sequences with an adapter that changes w; other rows are y. " +
		"A [r, K] and B [N, r] are the adapter's matrices for w, with its scale in B (Hu et al., LoRA, 2021, §4.1). y must be x · wᵀ, but x is not rounded. w is not read.",
	Params: []ir.ParamDef{param("y", "f32[T, N]", value), param("x", "f32[T, K]", value), param("w", "[N, K]", weight)},
	Attrs:  []ir.AttrDef{{Name: "parts", Kind: ir.IntsAttr, Doc: "of a w made of several weights, those that adapters can change; default: all"}},
	Traits: ir.RowWise | ir.TileLocal,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		y, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		x, err := matrix(o.Args[1])
		if err != nil {
			return nil, err
		}
		w := o.Args[2]
		if !w.Type.IsMatrix() || w.Type.Rows().N != y.Cols() || w.Type.Cols() != x.Cols() {
			return nil, fmt.Errorf("%s is %s, expected [%d, %d] as %s and %s", w, w.Type, y.Cols(), x.Cols(), o.Args[0], o.Args[1])
		}
		return one(y, nil)
	},
	// Without an adapter. Package interp evaluates the op with one.
	Eval: func(_ *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) { return in[:1], nil },
}
