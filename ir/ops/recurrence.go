package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
)

// LinearRecurrence covers linear attention with a matrix as state. The interpreter
// runs it token by token through Step.
var LinearRecurrence = &ir.OpDef{
	Name: "linear_recurrence",
	Doc: "Linear attention with one matrix S per head as state. A token's row decays it, writes to it, and reads it: S = D·S + k·uᵀ, y = scale·qᵀS, with D = exp(decay) and u = v. " +
		"Head h uses key head h / (heads / key_heads). beta: u = beta·v. delta rule: u = beta·(v − kᵀ(D·S)), which replaces what S holds for the key " +
		"(Gated DeltaNet: Yang et al. 2025, eq. 10; without beta, beta = 1). delta vectors: S = D·S + b·(aᵀ(D·S)) + k·uᵀ, with the vectors a and b of each head " +
		"(RWKV-7: Peng et al. 2025, eq. 17, with a = −κ/exp(decay)). skip: y = y + d·v. " +
		"It expresses lightning attention and RetNet (decay fixed), Mamba-2 (decay head, beta, skip; k = B, q = C, v = x), Gated DeltaNet (decay head, delta rule) and Kimi Delta Attention (decay channel, delta rule).",
	Params: []ir.ParamDef{
		param("s", "fixed state {s: f32[heads, key_dim, value_dim]}", state),
		param("q", "f32[T, key_heads·key_dim]", value),
		param("k", "f32[T, key_heads·key_dim]", value),
		param("v", "f32[T, heads·value_dim]", value),
		variadic(optional(param("x", "in this order: decay, f32[T, heads] with decay=head and f32[T, heads·key_dim] with decay=channel, natural logarithms; beta, f32[T, heads]; a and b, f32[T, heads·key_dim], with delta=vectors; d, a weight [heads], with skip", either))),
	},
	Attrs: []ir.AttrDef{
		{Name: "heads", Kind: ir.IntAttr, Required: true, Doc: "matrices"},
		{Name: "key_heads", Kind: ir.IntAttr, Doc: "heads of q and k; divides heads; default: heads"},
		{Name: "decay", Kind: ir.WordAttr, Words: []string{"none", "fixed", "head", "channel"}, Default: "none", Doc: "where the decay comes from: nowhere (1), the attribute slopes, or an argument with a number for each head, or for each row of S"},
		{Name: "slopes", Kind: ir.FloatsAttr, Doc: "with decay=fixed: logarithm of each head's decay; in a par region, those of all ranks in rank order"},
		{Name: "slope_scale", Kind: ir.PerLayerFloat, Default: 1.0, Doc: "factor on slopes"},
		{Name: "beta", Kind: ir.BoolAttr, Doc: "what a token writes is multiplied by the argument beta"},
		{Name: "delta", Kind: ir.WordAttr, Words: []string{"none", "rule", "vectors"}, Default: "none", Doc: "what a token removes from S"},
		{Name: "skip", Kind: ir.BoolAttr, Doc: "adds d·v to the result"},
		{Name: "scale", Kind: ir.FloatAttr, Default: 1.0, Doc: "factor on q"},
	},
	Traits: ir.Reads | ir.Writes,
	Infer:  inferRecurrence,
	Step:   stepRecurrence,
}

// A RecurrenceShape holds the sizes of a linear_recurrence and the indices of its
// optional arguments in Args; 0: none.
type RecurrenceShape struct {
	Heads, KeyHeads, KeyDim, ValueDim int

	Decay, Beta, Erase, Write, Skip int
}

// RecurrenceShapeOf returns the shape of a linear_recurrence whose state has three sizes.
func RecurrenceShapeOf(o *ir.Op) RecurrenceShape {
	f := o.Args[0].State.Fields[0]
	s := RecurrenceShape{Heads: o.Int("heads"), KeyHeads: o.Int("heads"), KeyDim: f.Shape[1], ValueDim: f.Shape[2]}
	if o.Has("key_heads") {
		s.KeyHeads = o.Int("key_heads")
	}
	at := 4
	next := func(has bool, index *int) {
		if has {
			*index, at = at, at+1
		}
	}
	next(o.Word("decay") == "head" || o.Word("decay") == "channel", &s.Decay)
	next(o.Bool("beta"), &s.Beta)
	next(o.Word("delta") == "vectors", &s.Erase)
	next(o.Word("delta") == "vectors", &s.Write)
	next(o.Bool("skip"), &s.Skip)
	return s
}

// args returns how many arguments an op of this shape has.
func (s RecurrenceShape) args() int {
	return 1 + max(3, s.Decay, s.Beta, s.Write, s.Skip)
}

// DecayCols returns the number of columns of the argument decay; 0: it has none.
func (s RecurrenceShape) DecayCols(o *ir.Op) int {
	switch o.Word("decay") {
	case "head":
		return s.Heads
	case "channel":
		return s.Heads * s.KeyDim
	}
	return 0
}

func inferRecurrence(o *ir.Op) ([]ir.Type, error) {
	heads := o.Int("heads")
	f, err := fixedField(o, "s", 3)
	if err != nil {
		return nil, err
	}
	if heads < 1 || f.Shape[0] != heads {
		return nil, fmt.Errorf("%s is %s, expected heads=%d matrices", o.Args[0], o.Args[0].State, heads)
	}
	s := RecurrenceShapeOf(o)
	if s.KeyHeads < 1 || heads%s.KeyHeads != 0 {
		return nil, fmt.Errorf("heads=%d is not a multiple of key_heads=%d", heads, s.KeyHeads)
	}
	if err := recurrenceSlopes(o, heads); err != nil {
		return nil, err
	}
	if len(o.Args) != s.args() {
		return nil, fmt.Errorf("%d arguments, expected %d with decay=%s, delta=%s, beta=%t and skip=%t", len(o.Args), s.args(), o.Word("decay"), o.Word("delta"), o.Bool("beta"), o.Bool("skip"))
	}
	cols := map[int]int{1: s.KeyHeads * s.KeyDim, 2: s.KeyHeads * s.KeyDim, 3: heads * s.ValueDim, s.Decay: s.DecayCols(o), s.Beta: heads, s.Erase: heads * s.KeyDim, s.Write: heads * s.KeyDim}
	for i := 1; i < len(o.Args); i++ {
		if i == s.Skip {
			if err := vector(o.Args[i], heads); err != nil {
				return nil, err
			}
			continue
		}
		if err := rowsOf(o, i, cols[i]); err != nil {
			return nil, err
		}
	}
	return one(f32(o.Args[1].Type.Rows(), ir.N(heads*s.ValueDim)), nil)
}

// recurrenceSlopes checks the attribute slopes; see verify_region.go for their number in
// a par region.
func recurrenceSlopes(o *ir.Op, heads int) error {
	slopes := o.Floats("slopes")
	switch fixed := o.Word("decay") == "fixed"; {
	case fixed != o.Has("slopes"):
		return fmt.Errorf("slopes are given with decay=fixed, and only then")
	case fixed && (len(slopes) == 0 || len(slopes)%heads != 0):
		return fmt.Errorf("slopes has %d numbers for %d heads", len(slopes), heads)
	}
	return nil
}

// fixedField returns the only field of an op's fixed state, which must be f32 with the
// given name and number of sizes.
func fixedField(o *ir.Op, name string, sizes int) (ir.Field, error) {
	st := o.Args[0].State
	if !st.Fixed || len(st.Fields) != 1 || st.Fields[0].Name != name || st.Fields[0].Elem.String() != "f32" || len(st.Fields[0].Shape) != sizes {
		return ir.Field{}, fmt.Errorf("%s is %s, expected a fixed state of one field %s: f32 with %d sizes", o.Args[0], st, name, sizes)
	}
	return st.Fields[0], nil
}

// rowsOf checks that argument i has the given number of columns and as many rows as
// argument 1.
func rowsOf(o *ir.Op, i, cols int) error {
	a := o.Args[i]
	if a.Kind == ir.Weight {
		return fmt.Errorf("%s is a weight, expected a value with %d columns", a, cols)
	}
	t, err := matrix(a)
	if err != nil {
		return err
	}
	if t.Cols() != cols {
		return fmt.Errorf("%s has %d columns, expected %d", a, t.Cols(), cols)
	}
	return sameRows(o.Args[1], a)
}

func stepRecurrence(o *ir.Op, state []float64, in ir.StepArgs, out []float64) {
	s := RecurrenceShapeOf(o)
	slopes := o.Floats("slopes")
	for h := range s.Heads {
		matrix := state[h*s.KeyDim*s.ValueDim:][:s.KeyDim*s.ValueDim]
		group := h / (s.Heads / s.KeyHeads)
		key := func(i int) []float64 { return in.Args[i][group*s.KeyDim:][:s.KeyDim] }
		own := func(i int) []float64 { return in.Args[i][h*s.KeyDim:][:s.KeyDim] }
		for i := range s.KeyDim {
			log := 0.0
			switch o.Word("decay") {
			case "fixed":
				log = slopes[(in.Rank*s.Heads+h)%len(slopes)] * o.Float("slope_scale")
			case "head":
				log = in.Args[s.Decay][h]
			case "channel":
				log = own(s.Decay)[i]
			}
			scaleBy(matrix[i*s.ValueDim:][:s.ValueDim], math.Exp(log))
		}
		v := in.Args[3][h*s.ValueDim:][:s.ValueDim]
		u := slices.Clone(v)
		switch o.Word("delta") {
		case "rule":
			for j, held := range readMatrix(matrix, key(2)) {
				u[j] -= held
			}
		case "vectors":
			writeMatrix(matrix, own(s.Write), readMatrix(matrix, own(s.Erase)))
		}
		if s.Beta > 0 {
			scaleBy(u, in.Args[s.Beta][h])
		}
		writeMatrix(matrix, key(2), u)
		for j, y := range readMatrix(matrix, key(1)) {
			y *= o.Float("scale")
			if s.Skip > 0 {
				y += in.Args[s.Skip][h] * v[j]
			}
			out[h*s.ValueDim+j] = y
		}
	}
}

// readMatrix returns xᵀ·m; m has len(x) rows.
func readMatrix(m, x []float64) []float64 {
	out := make([]float64, len(m)/len(x))
	for i, f := range x {
		for j := range out {
			out[j] += f * m[i*len(out)+j]
		}
	}
	return out
}

// writeMatrix adds x·uᵀ to m.
func writeMatrix(m, x, u []float64) {
	for i, f := range x {
		for j := range u {
			m[i*len(u)+j] += f * u[j]
		}
	}
}
