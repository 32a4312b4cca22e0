package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
)

// maxTaps is the maximum number of rows that unfold joins.
const maxTaps = 1024

// Unfold joins the rows around a token, so that a matmul computes a convolution.
var Unfold = &ir.OpDef{
	Name: "unfold",
	Doc: "y[t, c·W + j] = x[t − before + j, c] with W = before + 1 + after: the row of a token and those around it in its own sequence. " +
		"Rows before the first and after the last token of the sequence are 0. A matmul of the result with a weight [N, D·W], which is [N, D, W] as stored, is a convolution of W taps.",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs: []ir.AttrDef{
		{Name: "before", Kind: ir.IntAttr, Required: true, Doc: "number of rows before the token's own"},
		{Name: "after", Kind: ir.IntAttr, Required: true, Doc: "number of rows after it"},
	},
	Traits: ir.AcrossRows,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		before, after := o.Int("before"), o.Int("after")
		if before < 0 || after < 0 || before >= maxTaps || after >= maxTaps || before+after >= maxTaps {
			return nil, fmt.Errorf("before=%d and after=%d, expected 0 or more, and at most %d rows with the token's own", before, after, maxTaps)
		}
		return one(f32(x.Rows(), ir.N(x.Cols()*(before+1+after))), nil)
	},
}
