package ops

import (
	"math"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

func normAttrs(eps ir.AttrDef) []ir.AttrDef {
	return []ir.AttrDef{
		eps,
		{Name: "base", Kind: ir.FloatAttr, Default: 0.0, Doc: "added to the weight (1 in Gemma)"},
		{Name: "heads", Kind: ir.IntAttr, Default: 1, Doc: "number of slices of the columns, each normalized separately; the weight has the width of one slice"},
	}
}

// RMSNorm is root-mean-square normalization.
var RMSNorm = &ir.OpDef{
	Name:   "rmsnorm",
	Doc:    "y = x / √(mean(x²) + eps) · (w + base) (Zhang and Sennrich 2019, eq. 4)",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value), optional(param("w", "[D/heads]; default: 1", weight))},
	Attrs:  normAttrs(number("eps", "added to the mean square")),
	Traits: ir.RowWise | ir.PerHead,
	Infer:  inferNorm,
	Eval: evalNorm(func(o *ir.Op, x []float64) {
		scaleBy(x, 1/math.Sqrt(dot(x, x)/float64(len(x))+o.Float("eps")))
	}),
}

// LayerNorm is layer normalization.
var LayerNorm = &ir.OpDef{
	Name: "layernorm",
	Doc:  "y = (x − mean(x)) / √(var(x) + eps) · (w + base) + b (Ba et al. 2016), with the biased variance",
	Params: []ir.ParamDef{
		param("x", "f32[T, D]", value),
		optional(param("w", "[D/heads]; default: 1", weight)),
		optional(param("b", "[D/heads]; default: 0", weight)),
	},
	Attrs:  normAttrs(number("eps", "added to the variance")),
	Traits: ir.RowWise | ir.PerHead,
	Infer:  inferNorm,
	Eval: evalNorm(func(o *ir.Op, x []float64) {
		mean := 0.0
		for _, v := range x {
			mean += v / float64(len(x))
		}
		for i := range x {
			x[i] -= mean
		}
		scaleBy(x, 1/math.Sqrt(dot(x, x)/float64(len(x))+o.Float("eps")))
	}),
}

// L2Norm divides each row by its L2 norm.
var L2Norm = &ir.OpDef{
	Name:   "l2norm",
	Doc:    "y = x / √(Σ x² + eps)",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs: []ir.AttrDef{
		{Name: "eps", Kind: ir.FloatAttr, Default: 1e-12, Doc: "added to the sum of squares"},
		{Name: "heads", Kind: ir.IntAttr, Default: 1, Doc: "number of slices of the columns, each normalized separately"},
	},
	Traits: ir.RowWise | ir.PerHead,
	Infer:  inferNorm,
	Eval: evalNorm(func(o *ir.Op, x []float64) {
		scaleBy(x, 1/math.Sqrt(dot(x, x)+o.Float("eps")))
	}),
}

func scaleBy(x []float64, s float64) {
	for i := range x {
		x[i] *= s
	}
}

func inferNorm(o *ir.Op) ([]ir.Type, error) {
	x, err := matrix(o.Args[0])
	if err != nil {
		return nil, err
	}
	width, err := headWidth(o.Args[0], o.Int("heads"))
	if err != nil {
		return nil, err
	}
	for _, w := range o.Args[1:] {
		if err := vector(w, width); err != nil {
			return nil, err
		}
	}
	return one(x, nil)
}

// evalNorm normalizes each slice of each row in place, then applies weight and bias.
func evalNorm(slice func(o *ir.Op, x []float64)) func(*ir.Op, []*tensor.Tensor) ([]*tensor.Tensor, error) {
	return func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := in[0].Clone()
		width := out.Shape[1] / o.Int("heads")
		for at := 0; at < len(out.F); at += width {
			x := out.F[at : at+width]
			slice(o, x)
			for i := range x {
				if len(in) > 1 {
					x[i] *= in[1].F[i] + o.Float("base")
				}
				if len(in) > 2 {
					x[i] += in[2].F[i]
				}
			}
		}
		return []*tensor.Tensor{out}, nil
	}
}
