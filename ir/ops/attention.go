package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
)

// KVAppend writes the rows of a state. The interpreter holds its meaning.
var KVAppend = &ir.OpDef{
	Name:   "kv_append",
	Doc:    "Writes each token's row of the state: one argument per field, in the order of the fields, rounded to the field's element type.",
	Params: []ir.ParamDef{param("kv", "the state", state), variadic(param("x", "f32[T, elements of the field]", value))},
	Traits: ir.Writes | ir.TileLocal,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		st, rest := o.Args[0].State, o.Args[1:]
		if len(rest) != len(st.Fields) {
			return nil, fmt.Errorf("%d values for the %d fields of %s", len(rest), len(st.Fields), o.Args[0])
		}
		for i, f := range st.Fields {
			t, err := matrix(rest[i])
			if err != nil {
				return nil, err
			}
			if t.Cols() != f.Elems() {
				return nil, fmt.Errorf("%s has %d columns but field %s has %d elements", rest[i], t.Cols(), f, f.Elems())
			}
			if err := sameRows(rest[0], rest[i]); err != nil {
				return nil, err
			}
		}
		return nil, nil
	},
}

// Attention is scaled dot-product attention over a state's rows. The
// interpreter holds its meaning.
var Attention = &ir.OpDef{
	Name: "attention",
	Doc: "softmax(q·kᵀ·scale + bias)·v per head, over the rows of the token's own sequence that it sees: causal: position ≤ its own; " +
		"window W: position > its own − W. Query head h reads key head h / (heads / kv_heads). softcap c: scores become c·tanh(s/c) before masking; " +
		"alibi: adds slope[head] · (row's position − own position) (Press et al. 2021); sinks: exp(sink[head]) joins the denominator (gpt-oss).",
	Params: []ir.ParamDef{
		param("q", "f32[T, heads·head_dim]", value),
		param("kv", "state with fields k: [kv_heads, head_dim] and v: [kv_heads, v_dim]", state),
		optional(param("sinks", "[heads], with the flag sinks", weight)),
	},
	Attrs: []ir.AttrDef{
		{Name: "heads", Kind: ir.IntAttr, Required: true, Doc: "query heads"},
		{Name: "kv_heads", Kind: ir.IntAttr, Required: true, Doc: "key and value heads; divides heads"},
		{Name: "causal", Kind: ir.BoolAttr, Doc: "sees no later position"},
		{Name: "scale", Kind: ir.FloatAttr, Doc: "factor on scores; 1/√head_dim when absent"},
		{Name: "window", Kind: ir.PerLayerInt, Default: 0, Doc: "how many positions, its own included, a token sees; 0 is all"},
		{Name: "softcap", Kind: ir.FloatAttr, Default: 0.0, Doc: "bound on scores; 0 is none"},
		{Name: "alibi", Kind: ir.FloatsAttr, Doc: "slope of each head"},
		{Name: "sinks", Kind: ir.BoolAttr, Doc: "the last argument is a learned extra score per head"},
	},
	Traits: ir.Reads | ir.Root,
	Infer:  inferAttention,
}

// AttentionShape is what an attention op's state and attributes say.
type AttentionShape struct {
	Heads, KVHeads int
	HeadDim, VDim  int // elements of a key and of a value head
	Scale          float64
}

// AttentionShapeOf reads the shape of an attention op that has been inferred.
func AttentionShapeOf(o *ir.Op) AttentionShape {
	k, _ := o.Args[1].State.Field("k")
	v, _ := o.Args[1].State.Field("v")
	s := AttentionShape{Heads: o.Int("heads"), KVHeads: o.Int("kv_heads"), HeadDim: k.Shape[1], VDim: v.Shape[1], Scale: o.Float("scale")}
	if !o.Has("scale") {
		s.Scale = 1 / math.Sqrt(float64(s.HeadDim))
	}
	return s
}

func inferAttention(o *ir.Op) ([]ir.Type, error) {
	q, err := matrix(o.Args[0])
	if err != nil {
		return nil, err
	}
	heads, kvHeads := o.Int("heads"), o.Int("kv_heads")
	if heads < 1 || kvHeads < 1 || heads%kvHeads != 0 {
		return nil, fmt.Errorf("heads=%d is not a multiple of kv_heads=%d", heads, kvHeads)
	}
	for _, name := range []string{"k", "v"} {
		f, ok := o.Args[1].State.Field(name)
		if !ok || len(f.Shape) != 2 || f.Shape[0] != kvHeads {
			return nil, fmt.Errorf("%s is %s, expected field %s of shape [%d, width]", o.Args[1], o.Args[1].State, name, kvHeads)
		}
	}
	s := AttentionShapeOf(o)
	if q.Cols() != heads*s.HeadDim {
		return nil, fmt.Errorf("%s has %d columns, expected heads·head_dim = %d·%d", o.Args[0], q.Cols(), heads, s.HeadDim)
	}
	if a := o.Floats("alibi"); o.Has("alibi") && len(a) != heads {
		return nil, fmt.Errorf("alibi has %d slopes for %d heads", len(a), heads)
	}
	if slices.Min(append(o.Ints("window"), 0)) < 0 {
		return nil, fmt.Errorf("window is negative")
	}
	if o.Bool("sinks") != (len(o.Args) == 3) {
		return nil, fmt.Errorf("the flag sinks and a third argument go together")
	}
	if len(o.Args) == 3 {
		if err := vector(o.Args[2], heads); err != nil {
			return nil, err
		}
	}
	return one(f32(q.Rows(), ir.N(heads*s.VDim)), nil)
}
