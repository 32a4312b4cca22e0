package ops

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Sinusoid computes fixed position embeddings.
var Sinusoid = &ir.OpDef{
	Name: "sinusoid",
	Doc: "Sines and cosines of dim/2 angles (Vaswani et al. 2017, §3.5). half: all sines, then all cosines. pairs: sine and cosine of each angle alternate. " +
		"Angle c is (pos + offset) · 10000^(−c/(dim/2 − 1)), with factor and product rounded to float32 (half_minus_1: fairseq, M2M-100), " +
		"or (pos + offset) / 10000^(2c/dim) (dim: the paper, Marian, BART).",
	Params: []ir.ParamDef{param("pos", "i32[T]", value)},
	Attrs: []ir.AttrDef{
		{Name: "dim", Kind: ir.IntAttr, Required: true, Doc: "columns; even"},
		{Name: "offset", Kind: ir.IntAttr, Default: 0, Doc: "added to positions (2 in M2M-100)"},
		{Name: "layout", Kind: ir.WordAttr, Words: []string{"half", "pairs"}, Default: "half", Doc: "order of columns"},
		{Name: "exponent", Kind: ir.WordAttr, Words: []string{"half_minus_1", "dim"}, Default: "half_minus_1", Doc: "exponent of the frequencies"},
	},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		n, err := indices(o.Args[0])
		if err != nil {
			return nil, err
		}
		dim, least := o.Int("dim"), 2
		if o.Word("exponent") == "half_minus_1" {
			least = 4
		}
		if dim < least || dim%2 != 0 || o.Int("offset") < 0 {
			return nil, fmt.Errorf("dim=%d and offset=%d, expected an even number from %d and one from 0", dim, o.Int("offset"), least)
		}
		return one(f32(n, ir.N(dim)), nil)
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		half, freqs := o.Int("dim")/2, SinusoidFreqs(o)
		out := tensor.New(tensor.F32, len(in[0].F), 2*half)
		for t, p := range in[0].F {
			for c := range half {
				s, k := c, half+c
				if o.Word("layout") == "pairs" {
					s, k = 2*c, 2*c+1
				}
				row(out, t)[s], row(out, t)[k] = math.Sincos(sinusoidAngle(o, int(p)+o.Int("offset"), c, freqs))
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}

// sinusoidAngle returns angle c of a position, with the offset added.
func sinusoidAngle(o *ir.Op, pos, c int, freqs []float32) float64 {
	if o.Word("exponent") == "dim" {
		return float64(pos) / math.Pow(10000, 2*float64(c)/float64(o.Int("dim")))
	}
	return float64(float32(pos) * freqs[c])
}

// SinusoidFreqs returns the dim/2 frequencies, which multiply the positions. For
// half_minus_1 they are computed in float32, as Hugging Face transformers does.
func SinusoidFreqs(o *ir.Op) []float32 {
	half := o.Int("dim") / 2
	out := make([]float32, half)
	for c := range out {
		if o.Word("exponent") == "dim" {
			out[c] = float32(math.Pow(10000, -2*float64(c)/float64(2*half)))
			continue
		}
		step := float32(-math.Log(10000) / float64(half-1))
		out[c] = float32(math.Exp(float64(float32(c) * step)))
	}
	return out
}
