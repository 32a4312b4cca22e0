package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
)

// SelectiveScan is the recurrence of Mamba-1.
var SelectiveScan = &ir.OpDef{
	Name: "selective_scan",
	Doc: "The selective scan of Mamba (Gu and Dao 2023, algorithm 2), with N numbers per channel d as state: " +
		"h[d, n] = exp(dt[d]·a[d, n])·h[d, n] + dt[d]·b[n]·x[d], y[d] = Σ c[n]·h[d, n].",
	Params: []ir.ParamDef{
		param("h", "fixed state {h: f32[D, N]}", state),
		param("x", "f32[T, D]", value),
		param("dt", "f32[T, D], the step sizes", value),
		param("b", "f32[T, N]", value),
		param("c", "f32[T, N]", value),
		param("a", "[D, N]; negative numbers decay", weight),
	},
	Traits: ir.Reads | ir.Writes,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		f, err := fixedField(o, "h", 2)
		if err != nil {
			return nil, err
		}
		for i, cols := range []int{f.Shape[0], f.Shape[0], f.Shape[1], f.Shape[1]} {
			if err := rowsOf(o, i+1, cols); err != nil {
				return nil, err
			}
		}
		if t := o.Args[5].Type; !t.IsMatrix() || t.Shape[0].N != f.Shape[0] || t.Cols() != f.Shape[1] {
			return nil, fmt.Errorf("%s is %s, expected [%d, %d]", o.Args[5], t, f.Shape[0], f.Shape[1])
		}
		return one(o.Args[1].Type, nil)
	},
	Step: func(o *ir.Op, state []float64, in ir.StepArgs, out []float64) {
		x, dt, b, c, a := in.Args[1], in.Args[2], in.Args[3], in.Args[4], in.Args[5]
		for d := range x {
			out[d] = 0
			for n := range b {
				at := d*len(b) + n
				state[at] = math.Exp(dt[d]*a[at])*state[at] + dt[d]*b[n]*x[d]
				out[d] += c[n] * state[at]
			}
		}
	},
}

// RGLRU is the recurrence of Griffin and RecurrentGemma.
var RGLRU = &ir.OpDef{
	Name: "rg_lru",
	Doc: "The real-gated linear recurrent unit (Griffin: De et al. 2024, eq. 4), with one number per column as state: " +
		"y = h = exp(log_a)·h + √(1 − exp(2·log_a))·x. The factor on x is 1 for the first token of a sequence, as in RecurrentGemma.",
	Params: []ir.ParamDef{
		param("h", "fixed state {h: f32[D]}", state),
		param("x", "f32[T, D], the gated input", value),
		param("log_a", "f32[T, D], at most 0", value),
	},
	Traits: ir.Reads | ir.Writes,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		f, err := fixedField(o, "h", 1)
		if err != nil {
			return nil, err
		}
		for i := range 2 {
			if err := rowsOf(o, i+1, f.Shape[0]); err != nil {
				return nil, err
			}
		}
		return one(o.Args[1].Type, nil)
	},
	Step: func(o *ir.Op, state []float64, in ir.StepArgs, out []float64) {
		x, log := in.Args[1], in.Args[2]
		for d := range x {
			factor := math.Sqrt(-math.Expm1(2 * log[d]))
			if in.First {
				factor = 1
			}
			state[d] = math.Exp(log[d])*state[d] + factor*x[d]
			out[d] = state[d]
		}
	},
}

// ShortConv is the short convolution before linear attention and in LFM2.
var ShortConv = &ir.OpDef{
	Name: "short_conv",
	Doc: "Causal convolution of each column with its own W taps: y[t] = Σ w[j]·x[t − W + 1 + j] + b, over the rows of the token's own sequence; " +
		"rows before its first are 0. The state holds the last W − 1 rows.",
	Params: []ir.ParamDef{
		param("rows", "fixed state {x: f32[W − 1, D]}", state),
		param("x", "f32[T, D]", value),
		param("w", "[W, D], W at least 2", weight),
		optional(param("b", "[D]; default: 0", weight)),
	},
	Traits: ir.Reads | ir.Writes,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		f, err := fixedField(o, "x", 2)
		if err != nil {
			return nil, err
		}
		if err := rowsOf(o, 1, f.Shape[1]); err != nil {
			return nil, err
		}
		if t := o.Args[2].Type; !t.IsMatrix() || t.Shape[0].N != f.Shape[0]+1 || t.Cols() != f.Shape[1] {
			return nil, fmt.Errorf("%s is %s, expected [%d, %d]", o.Args[2], t, f.Shape[0]+1, f.Shape[1])
		}
		if len(o.Args) > 3 {
			if err := vector(o.Args[3], f.Shape[1]); err != nil {
				return nil, err
			}
		}
		return one(o.Args[1].Type, nil)
	},
	Step: func(o *ir.Op, state []float64, in ir.StepArgs, out []float64) {
		x, w := in.Args[1], in.Args[2]
		rows := slices.Concat(state, x)
		for d := range x {
			out[d] = 0
			if len(in.Args) > 3 {
				out[d] = in.Args[3][d]
			}
			for at := d; at < len(rows); at += len(x) {
				out[d] += w[at] * rows[at]
			}
		}
		copy(state, rows[len(x):])
	},
}

// TokenShift returns the row of the token before.
var TokenShift = &ir.OpDef{
	Name: "token_shift",
	Doc:  "y[t] = x[t − 1], the row of the token before in the same sequence; 0 for its first token (RWKV: Peng et al. 2023, §3.1).",
	Params: []ir.ParamDef{
		param("row", "fixed state {x: f32[D]}", state),
		param("x", "f32[T, D]", value),
	},
	Traits: ir.Reads | ir.Writes,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		f, err := fixedField(o, "x", 1)
		if err != nil {
			return nil, err
		}
		return one(o.Args[1].Type, rowsOf(o, 1, f.Shape[0]))
	},
	Step: func(o *ir.Op, state []float64, in ir.StepArgs, out []float64) {
		copy(out, state)
		copy(state, in.Args[1])
	},
}
