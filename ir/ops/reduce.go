package ops

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Reduce computes one number for each row.
var Reduce = &ir.OpDef{
	Name:   "reduce",
	Doc:    "y[t] is one number for row t of x. mean: mean(x). rms: the root mean square √max(mean(x²), min).",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
	Attrs: []ir.AttrDef{
		{Name: "kind", Kind: ir.WordAttr, Words: []string{"mean", "rms"}, Default: "mean", Doc: "what is computed"},
		{Name: "min", Kind: ir.FloatAttr, Default: 0.0, Doc: "with rms: lower bound of the mean square"},
	},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if least := o.Float("min"); err == nil && (least < 0 || least > 0 && o.Word("kind") != "rms") {
			err = fmt.Errorf("min=%g with kind=%s; expected 0 or more, and 0 without rms", least, o.Word("kind"))
		}
		if err != nil {
			return nil, err
		}
		return one(f32(x.Rows(), ir.N(1)), nil)
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := tensor.New(tensor.F32, in[0].Shape[0], 1)
		rms := o.Word("kind") == "rms"
		for t := range out.F {
			x, sum := row(in[0], t), 0.0
			for _, v := range x {
				if rms {
					v *= v
				}
				sum += v
			}
			if out.F[t] = sum / float64(len(x)); rms {
				out.F[t] = math.Sqrt(math.Max(out.F[t], o.Float("min")))
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}

// PositionScale computes a factor for each token that grows with its position.
var PositionScale = &ir.OpDef{
	Name: "position_scale",
	Doc: "y[t] = 1 + by · log(1 + ⌊(pos[t] + offset) / floor⌋), the temperature of attention by position " +
		"(Nakanishi 2025, arXiv 2501.19399, as in Llama 4).",
	Params: []ir.ParamDef{param("pos", "i32[T]", value)},
	Attrs: []ir.AttrDef{
		{Name: "floor", Kind: ir.IntAttr, Required: true, Doc: "tokens of one step of the factor"},
		{Name: "by", Kind: ir.FloatAttr, Required: true, Doc: "factor on the logarithm"},
		{Name: "offset", Kind: ir.IntAttr, Default: 1, Doc: "position of the first token"},
	},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		pos, err := indices(o.Args[0])
		if err == nil && (o.Int("floor") < 1 || o.Int("offset") < 0) {
			err = fmt.Errorf("floor=%d, offset=%d, expected at least 1 and 0", o.Int("floor"), o.Int("offset"))
		}
		if err != nil {
			return nil, err
		}
		return one(f32(pos, ir.N(1)), nil)
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := tensor.New(tensor.F32, in[0].Shape[0], 1)
		for t, pos := range in[0].F {
			out.F[t] = 1 + o.Float("by")*math.Log1p(math.Floor((pos+float64(o.Int("offset")))/float64(o.Int("floor"))))
		}
		return []*tensor.Tensor{out}, nil
	},
}
