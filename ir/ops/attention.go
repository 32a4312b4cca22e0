package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
)

// KVAppend writes rows of a state. The interpreter implements it.
var KVAppend = &ir.OpDef{
	Name:   "kv_append",
	Doc:    "Writes each token's row of the state: one argument per field, in the order of the fields, rounded to the field's element type.",
	Params: []ir.ParamDef{param("kv", "the state", state), variadic(param("x", "f32[T, elements of the field]", value))},
	Traits: ir.Writes | ir.TileLocal,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		st, rest := o.Args[0].State, o.Args[1:]
		if st.Fixed {
			return nil, fmt.Errorf("%s is %s, expected rows", o.Args[0], st)
		}
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

// Attention is scaled dot-product attention over the rows of a state. The interpreter
// implements it.
var Attention = &ir.OpDef{
	Name: "attention",
	Doc: "softmax(q·kᵀ·scale + bias)·v per head, over the visible rows of the token's own sequence. Query head h reads KV head h / (heads / kv_heads). " +
		"causal: rows at positions ≤ the token's own are visible. window W: with causal, positions > own − W, otherwise at most W away on either side. " +
		"softcap c: scores become c·tanh(s/c) before masking. " +
		"alibi: adds −slope[head] · |row's position − own position| (Press et al. 2021; without causal, the symmetric form). " +
		"rel_buckets: adds rel[bucket, head], with the bucket computed from row's position − own position (T5: Raffel et al. 2020, §2.1; see RelBucket in ir/ops). " +
		"rel_keys, rel_queries: adds to q·kᵀ, before scale, q·rel_keys[bucket] and k·rel_queries[bucket] of the head, with the bucket of a distance: disentangled attention (DeBERTa: He et al. 2021, eq. 4). " +
		"sinks: adds exp(sink[head]) to the denominator (gpt-oss). " +
		"selected: of the visible rows, only those at the positions in the row of the last argument (a result of select_rows) are visible. " +
		"every m: only rows at positions p where m divides p + 1 are visible. " +
		"lse: the result has a further column per head, the logarithm of the sum of exp(score), for merge_attention; a token may then see no row. " +
		"cross: cross-attention, which reads all rows of a source state that another graph wrote, regardless of their positions.",
	Params: []ir.ParamDef{
		param("q", "f32[T, heads·head_dim]", value),
		param("kv", "state with fields k: [kv_heads, head_dim] and v: [kv_heads, v_dim]", state),
		optional(param("rel", "weight [rel_buckets, heads], with rel_buckets", either)),
		optional(param("rel_keys", "weight [heads·head_dim, rel_buckets], with the flag rel_keys", either)),
		optional(param("rel_queries", "weight [rel_buckets, heads·head_dim], with the flag rel_queries", either)),
		optional(param("sinks", "weight [heads], with the flag sinks; follows rel", either)),
		optional(param("selected", "f32[T, top], with the flag selected; follows sinks", value)),
	},
	Attrs: []ir.AttrDef{
		{Name: "heads", Kind: ir.IntAttr, Required: true, Doc: "query heads"},
		{Name: "kv_heads", Kind: ir.IntAttr, Required: true, Doc: "KV heads; divides heads"},
		{Name: "causal", Kind: ir.BoolAttr, Doc: "later positions are not visible"},
		{Name: "cross", Kind: ir.BoolAttr, Doc: "cross-attention to the rows of the sequence's source"},
		{Name: "scale", Kind: ir.FloatAttr, Doc: "factor on scores; default: 1/√head_dim"},
		{Name: "window", Kind: ir.PerLayerInt, Default: 0, Doc: "with causal: number of visible positions, the token's own included; otherwise the visible distance on either side; 0: all"},
		{Name: "chunk", Kind: ir.PerLayerInt, Default: 0, Doc: "with causal: positions are divided into chunks of this number, and only those of the token's own chunk are visible; 0: all"},
		{Name: "global", Kind: ir.IntAttr, Default: 0, Doc: "with window, without causal: the first positions, which are visible whatever the distance (Longformer: Beltagy et al. 2020, §3.1)"},
		{Name: "softcap", Kind: ir.FloatAttr, Default: 0.0, Doc: "bound on scores; 0: none"},
		{Name: "alibi", Kind: ir.FloatsAttr, Doc: "slope of each head; in a par region, the slopes of all ranks in rank order"},
		{Name: "rel_buckets", Kind: ir.IntAttr, Default: 0, Doc: "rows of the argument rel; 0: no such argument"},
		{Name: "rel_keys", Kind: ir.BoolAttr, Doc: "positions are keys of the content's queries; there is no argument rel then"},
		{Name: "rel_queries", Kind: ir.BoolAttr, Doc: "positions are queries of the content's keys; there is no argument rel then"},
		{Name: "rel_spacing", Kind: ir.WordAttr, Default: "buckets", Words: []string{"buckets", "linear", "log"}, Doc: "bucket of a distance; buckets: RelBucket; linear, log: of the position behind, from the middle of the buckets (see RelIndex in ir/ops)"},
		{Name: "rel_max", Kind: ir.IntAttr, Default: 128, Doc: "minimum distance of the last bucket"},
		{Name: "rel_bidirectional", Kind: ir.BoolAttr, Doc: "later positions use the upper half of the buckets"},
		{Name: "sinks", Kind: ir.BoolAttr, Doc: "an argument is a learned extra score per head"},
		{Name: "every", Kind: ir.IntAttr, Default: 1, Doc: "distance of the visible rows"},
		{Name: "lse", Kind: ir.BoolAttr, Doc: "further columns: the logarithms of the denominators"},
		{Name: "selected", Kind: ir.BoolAttr, Doc: "the last argument lists the rows that are visible"},
	},
	Traits: ir.Reads | ir.Root,
	Infer:  inferAttention,
}

// An AttentionShape holds the sizes and optional arguments of an attention op.
type AttentionShape struct {
	Heads, KVHeads int
	HeadDim, VDim  int // elements of a key head and of a value head
	Scale          float64
	Rel, Sinks     int // indices of these weights in Args; 0: none
	RelKeys        int // likewise
	RelQueries     int // likewise
	Selected       int // index of the positions of the visible rows in Args; 0: none
}

// AttentionShapeOf returns the shape of an attention op with inferred types.
func AttentionShapeOf(o *ir.Op) AttentionShape {
	k, _ := o.Args[1].State.Field("k")
	v, _ := o.Args[1].State.Field("v")
	s := AttentionShape{Heads: o.Int("heads"), KVHeads: o.Int("kv_heads"), HeadDim: k.Shape[1], VDim: v.Shape[1], Scale: o.Float("scale")}
	if !o.Has("scale") {
		s.Scale = 1 / math.Sqrt(float64(s.HeadDim))
	}
	at := 2
	content := o.Bool("rel_keys") || o.Bool("rel_queries")
	if o.Int("rel_buckets") > 0 && !content {
		s.Rel, at = at, at+1
	}
	if o.Bool("rel_keys") {
		s.RelKeys, at = at, at+1
	}
	if o.Bool("rel_queries") {
		s.RelQueries, at = at, at+1
	}
	if o.Bool("sinks") {
		s.Sinks, at = at, at+1
	}
	if o.Bool("selected") {
		s.Selected = at
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
		if !ok || o.Args[1].State.Fixed || len(f.Shape) != 2 || f.Shape[0] != kvHeads {
			return nil, fmt.Errorf("%s is %s, expected field %s of shape [%d, width]", o.Args[1], o.Args[1].State, name, kvHeads)
		}
	}
	s := AttentionShapeOf(o)
	if q.Cols() != heads*s.HeadDim {
		return nil, fmt.Errorf("%s has %d columns, expected heads·head_dim = %d·%d", o.Args[0], q.Cols(), heads, s.HeadDim)
	}
	if a := o.Floats("alibi"); o.Has("alibi") && (len(a) == 0 || len(a)%heads != 0) {
		return nil, fmt.Errorf("alibi has %d slopes for %d heads", len(a), heads)
	}
	if g := o.Int("global"); g < 0 || g > 0 && (o.Bool("causal") || o.Bool("cross")) {
		return nil, fmt.Errorf("global=%d, expected 0 or more, with neither causal nor cross", g)
	}
	if slices.Min(o.Ints("window")) < 0 || o.Int("rel_buckets") < 0 {
		return nil, fmt.Errorf("window or rel_buckets is negative")
	}
	if err := chunks(o); err != nil {
		return nil, err
	}
	if err := attentionWeights(o, s); err != nil {
		return nil, err
	}
	if o.Int("every") < 1 || o.Int("every") > 1 && !o.Bool("causal") || o.Bool("lse") && o.Bool("sinks") {
		return nil, fmt.Errorf("every=%d, expected at least 1, and 1 without causal; lse excludes sinks", o.Int("every"))
	}
	if o.Bool("lse") {
		return one(f32(q.Rows(), ir.N(heads*(s.VDim+1))), crossAttention(o))
	}
	return one(f32(q.Rows(), ir.N(heads*s.VDim)), crossAttention(o))
}

// chunks checks the attribute chunk.
func chunks(o *ir.Op) error {
	list := o.Ints("chunk")
	if slices.Max(list) > 0 && !o.Bool("causal") {
		return fmt.Errorf("chunk requires causal")
	}
	for i, n := range list {
		if n < 0 || n > 0 && o.IntAt("window", min(i, len(o.Ints("window"))-1)) > 0 {
			return fmt.Errorf("chunk=%d with window=%d; expected 0 or more, and one of them", n, o.IntAt("window", min(i, len(o.Ints("window"))-1)))
		}
	}
	return nil
}

// Span returns what limits the rows that attention sees in an iteration: a window, or a
// chunk as a negative number; 0 if nothing does.
func Span(o *ir.Op, iter int) int {
	if n := o.IntAt("chunk", iter); n > 0 {
		return -n
	}
	return o.IntAt("window", iter)
}

// attentionWeights checks the optional arguments against the attributes that require
// them.
func attentionWeights(o *ir.Op, s AttentionShape) error {
	want := 2
	for _, at := range []int{s.Rel, s.RelKeys, s.RelQueries, s.Sinks, s.Selected} {
		if at > 0 {
			want++
		}
	}
	if len(o.Args) != want {
		return fmt.Errorf("%d arguments, expected %d: rel_buckets, rel_keys, rel_queries, sinks and selected each require one", len(o.Args), want)
	}
	for at, a := range o.Args {
		if at >= 2 && (a.Kind == ir.Weight) == (at == s.Selected) {
			return fmt.Errorf("%s is a %s: rel_buckets and sinks require weights, selected a value", a, a.Kind)
		}
	}
	if s.Selected > 0 {
		if err := selectedRows(o, o.Args[s.Selected]); err != nil {
			return err
		}
	}
	if s.Sinks > 0 {
		if err := vector(o.Args[s.Sinks], s.Heads); err != nil {
			return err
		}
	}
	if s.RelKeys > 0 || s.RelQueries > 0 {
		return contentBias(o, s)
	}
	if s.Rel == 0 {
		return nil
	}
	buckets, most := o.Int("rel_buckets"), o.Int("rel_max")
	if t := o.Args[s.Rel].Type; !t.IsMatrix() || t.Shape[0].N != buckets || t.Cols() != s.Heads {
		return fmt.Errorf("%s is %s, expected [rel_buckets, heads] = [%d, %d]", o.Args[s.Rel], t, buckets, s.Heads)
	}
	if o.Bool("rel_bidirectional") {
		if buckets%2 != 0 {
			return fmt.Errorf("rel_buckets=%d is not divisible by two directions", buckets)
		}
		buckets /= 2
	}
	if buckets < 2 || most <= buckets/2 {
		return fmt.Errorf("rel_buckets=%d and rel_max=%d, expected at least 2 buckets per direction and rel_max above half of them", o.Int("rel_buckets"), most)
	}
	return nil
}

// selectedRows checks the positions of the visible rows.
func selectedRows(o *ir.Op, a ir.Arg) error {
	if _, err := matrix(a); err != nil {
		return err
	}
	if !o.Bool("causal") {
		return fmt.Errorf("selected requires causal")
	}
	return sameRows(o.Args[0], a)
}

// crossAttention checks that cross reads a source state and is not combined with
// other attributes.
func crossAttention(o *ir.Op) error {
	if !o.Bool("cross") {
		return nil
	}
	if !o.Args[1].State.Source {
		return fmt.Errorf("cross on %s, which is not a source state", o.Args[1])
	}
	if o.Bool("causal") || o.Has("alibi") || o.Int("rel_buckets") > 0 || slices.Max(o.Ints("window")) > 0 {
		return fmt.Errorf("cross cannot be combined with causal, window, alibi or rel_buckets")
	}
	return nil
}
