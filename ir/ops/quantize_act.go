package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// QuantizeAct quantizes activations to eight bits, or rounds them to bf16.
var QuantizeAct = &ir.OpDef{
	Name: "quantize_act",
	Doc: "Quantizes each block of 16, 32 or 64 columns to integers −127…127 times one scale: scale = absmax/127 in float32, " +
		"codes x · (127/absmax) in float32, rounded to nearest, ties to even. A block of zeros has scale 0. " +
		"With outliers=n, the n largest groups of 4 columns of a row are quantized separately, each like a block, and the remainder is quantized in its block. The row is the sum of both. " +
		"For bf16, each number is rounded to nearest, ties to even. The op changes values, so it is an op and not an annotation.",
	Params: []ir.ParamDef{param("x", "f32[T, K]", value)},
	Attrs: []ir.AttrDef{{Name: "type", Kind: ir.DTypeAttr, Required: true, Doc: "a8_b16, a8_b32, a8_b64 or bf16"},
		{Name: "outliers", Kind: ir.IntAttr, Default: 0, Doc: "outlier groups per row, at most 4"}},
	Traits: ir.RowWise | ir.TileLocal,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		t := o.DType("type")
		if !rounded(t) {
			return nil, fmt.Errorf("type=%s, expected a8_b16, a8_b32, a8_b64 or bf16", t)
		}
		if x.Cols()%t.Block() != 0 {
			return nil, fmt.Errorf("%s has %d columns, which are not whole blocks of %d", o.Args[0], x.Cols(), t.Block())
		}
		switch n := o.Int("outliers"); {
		case n < 0 || n > MaxOutliers:
			return nil, fmt.Errorf("outliers=%d, expected 0 … %d", n, MaxOutliers)
		case n > 0 && !t.IsActivation():
			return nil, fmt.Errorf("outliers=%d requires a type with blocks, not %s", n, t)
		case n > 0 && x.Cols() > MaxOutlierCols:
			return nil, fmt.Errorf("outliers=%d of %d columns, expected at most %d columns", n, x.Cols(), MaxOutlierCols)
		}
		return one(ir.T(t, x.Shape...), nil)
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := in[0].Clone()
		out.DType = o.DType("type")
		for t := range out.Shape[0] {
			if err := roundActivation(out.DType, row(out, t), o.Int("outliers")); err != nil {
				return nil, err
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}

// Limits of the space that kernels reserve for the outliers of a row.
const (
	MaxOutliers    = 4
	MaxOutlierCols = 1 << 16
)

// roundActivation is Round with n outlier groups rounded separately.
func roundActivation(dt tensor.DType, x []float64, n int) error {
	if n == 0 {
		return Round(dt, x)
	}
	f := make([]float32, len(x))
	for i, v := range x {
		f[i] = float32(v)
	}
	taken := tensor.TakeOutlierColumns(f, n)
	for i, v := range f {
		x[i] = float64(v)
	}
	if err := Round(dt, x); err != nil {
		return err
	}
	for _, o := range taken {
		for i, q := range o.Codes {
			x[tensor.OutlierGroup*o.Group+i] += float64(o.Scale) * float64(q)
		}
	}
	return nil
}

// rounded reports whether quantize_act can return the type.
func rounded(t tensor.DType) bool { return t.IsActivation() || t == tensor.BF16 }
