package ops

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// RopeTable computes the cosines and sines of rotary position embedding.
var RopeTable = &ir.OpDef{
	Name: "rope_table",
	Doc: "Columns i < dim/2 are cos(pos · f[i]) · scale, columns dim/2 + i are sin(pos · f[i]) · scale (Su et al. 2021). " +
		"f[i] = theta^(−2i/dim), or freqs; f and pos · f are rounded to float32, as transformers does. " +
		"A sequence that is longer than long_from rows at the end of the step uses long_freqs and long_scale (LongRoPE, Ding et al. 2024). " +
		"For a sequence of n > dynamic_from rows, theta is multiplied by (dynamic_factor · n / dynamic_from − dynamic_factor + 1)^(dim / (dim − 2)) (dynamic NTK scaling, as transformers' rope_type dynamic).",
	Params: []ir.ParamDef{param("pos", "i32[T]", value)},
	Attrs: []ir.AttrDef{
		{Name: "dim", Kind: ir.IntAttr, Required: true, Doc: "columns that rope rotates in each head; even"},
		{Name: "theta", Kind: ir.FloatAttr, Default: 10000.0, Doc: "base of the frequencies"},
		{Name: "freqs", Kind: ir.FloatsAttr, Doc: "dim/2 frequencies, used in place of theta"},
		{Name: "scale", Kind: ir.FloatAttr, Default: 1.0, Doc: "factor on both halves"},
		{Name: "shift", Kind: ir.IntAttr, Default: 0, Doc: "number added to pos"},
		{Name: "long_freqs", Kind: ir.FloatsAttr, Doc: "dim/2 frequencies of long sequences"},
		{Name: "long_from", Kind: ir.IntAttr, Doc: "length above which a sequence uses long_freqs"},
		{Name: "long_scale", Kind: ir.FloatAttr, Doc: "scale of long sequences; default: scale"},
		{Name: "dynamic_from", Kind: ir.IntAttr, Doc: "length above which theta grows with the sequence"},
		{Name: "dynamic_factor", Kind: ir.FloatAttr, Doc: "growth factor of theta"},
	},
	Traits: ir.RowWise,
	Infer:  inferRopeTable,
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		length := 0.0
		for _, p := range in[0].F {
			length = math.Max(length, p+1)
		}
		out := tensor.New(tensor.F32, len(in[0].F), o.Int("dim"))
		for t, p := range in[0].F {
			copy(row(out, t), RopeRow(o, p, int(length)))
		}
		return []*tensor.Tensor{out}, nil
	},
}

// RopeRow returns the row of a rope table for a position in a sequence of the given
// length.
func RopeRow(o *ir.Op, pos float64, length int) []float64 {
	freqs, scale := RopeFreqs(o, length)
	pos += float64(o.Int("shift"))
	out := make([]float64, 2*len(freqs))
	for i, f := range freqs {
		angle := float64(float32(pos) * f)
		out[i], out[len(freqs)+i] = math.Cos(angle)*scale, math.Sin(angle)*scale
	}
	return out
}

func inferRopeTable(o *ir.Op) ([]ir.Type, error) {
	n, err := indices(o.Args[0])
	if err != nil {
		return nil, err
	}
	dim := o.Int("dim")
	if dim < 2 || dim%2 != 0 {
		return nil, fmt.Errorf("dim=%d, expected an even number from 2", dim)
	}
	for _, name := range []string{"freqs", "long_freqs"} {
		if fs := o.Floats(name); o.Has(name) && len(fs) != dim/2 {
			return nil, fmt.Errorf("%s has %d entries, expected dim/2 = %d", name, len(fs), dim/2)
		}
	}
	if o.Has("long_freqs") != o.Has("long_from") {
		return nil, fmt.Errorf("long_freqs and long_from must be set together")
	}
	if err := checkDynamic(o); err != nil {
		return nil, err
	}
	return one(f32(n, ir.N(dim)), nil)
}

func checkDynamic(o *ir.Op) error {
	switch {
	case o.Has("dynamic_from") != o.Has("dynamic_factor"):
		return fmt.Errorf("dynamic_from and dynamic_factor must be set together")
	case !o.Has("dynamic_from"):
		return nil
	case o.Has("freqs") || o.Has("long_freqs"):
		return fmt.Errorf("dynamic_from requires theta, but freqs is set")
	case o.Int("dynamic_from") < 1 || o.Float("dynamic_factor") < 1 || o.Int("dim") < 4:
		return fmt.Errorf("dynamic_from=%d, dynamic_factor=%g, dim=%d, expected at least 1, 1 and 4", o.Int("dynamic_from"), o.Float("dynamic_factor"), o.Int("dim"))
	}
	return nil
}

// ropeTheta returns the base of the frequencies for a sequence of the given length.
func ropeTheta(o *ir.Op, length int) float32 {
	theta, from := float32(o.Float("theta")), o.Int("dynamic_from")
	if !o.Has("dynamic_from") || length <= from {
		return theta
	}
	factor, dim := o.Float("dynamic_factor"), float64(o.Int("dim"))
	grown := float32(factor)*float32(length)/float32(from) - float32(factor-1)
	return theta * float32(math.Pow(float64(grown), dim/(dim-2)))
}

// RopeFreqs returns the dim/2 frequencies and the scale for a sequence of the given
// length, in the float32 arithmetic of transformers.
func RopeFreqs(o *ir.Op, length int) (freqs []float32, scale float64) {
	dim, scale := o.Int("dim"), o.Float("scale")
	given := o.Floats("freqs")
	if o.Has("long_freqs") && length > o.Int("long_from") {
		given = o.Floats("long_freqs")
		if o.Has("long_scale") {
			scale = o.Float("long_scale")
		}
	}
	for i := range dim / 2 {
		if given != nil {
			freqs = append(freqs, float32(given[i]))
			continue
		}
		exponent := float32(2*i) / float32(dim)
		freqs = append(freqs, 1/float32(math.Pow(float64(ropeTheta(o, length)), float64(exponent))))
	}
	return freqs, scale
}

// Rope rotates pairs of columns.
var Rope = &ir.OpDef{
	Name: "rope",
	Doc: "Rotates pairs (a, b) of columns in each head to (a·cos − b·sin, b·cos + a·sin). half: pairs (i, i + dim/2), as in " +
		"transformers. adjacent: pairs (2i, 2i + 1), as in the paper (Su et al. 2021, eq. 34).",
	Params: []ir.ParamDef{param("x", "f32[T, D]", value), param("cs", "f32[T, dim], from rope_table", value)},
	Attrs: []ir.AttrDef{
		{Name: "heads", Kind: ir.IntAttr, Required: true, Doc: "number of heads in the columns"},
		{Name: "pairs", Kind: ir.WordAttr, Words: []string{"half", "adjacent"}, Default: "half", Doc: "columns that form a pair"},
		{Name: "offset", Kind: ir.IntAttr, Default: 0, Doc: "first rotated column of each head"},
	},
	Traits: ir.RowWise | ir.TileLocal,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		cs, err := matrix(o.Args[1])
		if err != nil {
			return nil, err
		}
		if err := sameRows(o.Args[0], o.Args[1]); err != nil {
			return nil, err
		}
		width, err := headWidth(o.Args[0], o.Int("heads"))
		if err == nil && (o.Int("offset") < 0 || o.Int("offset")+cs.Cols() > width || cs.Cols()%2 != 0) {
			err = fmt.Errorf("offset=%d and %d rotated columns do not fit a head of %d", o.Int("offset"), cs.Cols(), width)
		}
		return one(x, err)
	},
	Eval: evalRope,
}

func evalRope(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	out := in[0].Clone()
	half := in[1].Shape[1] / 2
	width := out.Shape[1] / o.Int("heads")
	for t := range out.Shape[0] {
		cs := row(in[1], t)
		for at := o.Int("offset"); at < out.Shape[1]; at += width {
			head := row(out, t)[at:]
			for i := range half {
				ia, ib := i, i+half
				if o.Word("pairs") == "adjacent" {
					ia, ib = 2*i, 2*i+1
				}
				a, b := head[ia], head[ib]
				cos, sin := cs[i], cs[half+i]
				head[ia], head[ib] = a*cos-b*sin, b*cos+a*sin
			}
		}
	}
	return []*tensor.Tensor{out}, nil
}
