package irtest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/iflowc/iflowc/ir"
)

// Random returns a random small decoder module: the structure of Llama, with variations in
// norms, biases, heads, positions, activations, gating, windows, residual order and element
// types. A seed always results in the same module, and every module passes ir.Verify.
func Random(seed uint64) *ir.Module {
	return mustParse(RandomText(seed))
}

// RandomText returns the text of the module of Random.
func RandomText(seed uint64) string {
	return newMaker(seed).module()
}

func newMaker(seed uint64) *maker {
	r := &maker{rng: rand.New(rand.NewPCG(seed, 0x69666c77)), state: "kv"}
	r.choose()
	return r
}

// A maker holds the choices for one random module.
type maker struct {
	rng                    *rand.Rand
	decls, body            strings.Builder
	layers, width, ffn     int
	heads, kvHeads, dim    int
	norm, act, elem, kv    string
	bias, gated, tied      bool
	qkNorm, postNorm       bool
	parallel, rope, peeled bool
	pairs                  string
	ropeDim, window        int
	softcap                bool
	fresh                  int
	experts, topK          int    // of a mixture of experts; 0 experts: a dense feed-forward network
	state, prefix          string // of the current stack of layers
	source, crossing       bool   // encoder layers; layers with cross-attention to %cross
	before, after          int    // rows around a token that the FFN of an encoder layer reads
	relative               bool   // relative position biases in place of ALiBi slopes
}

func (r *maker) coin() bool                 { return r.rng.IntN(2) == 0 }
func (r *maker) one(words ...string) string { return words[r.rng.IntN(len(words))] }

func (r *maker) choose() {
	r.layers = 1 + r.rng.IntN(3)
	r.width = 32 * (1 + r.rng.IntN(2))
	r.ffn = []int{32, 48, 64, 96, 20}[r.rng.IntN(5)]
	r.kvHeads = 1 + r.rng.IntN(2)
	r.heads = r.kvHeads * (1 + r.rng.IntN(3))
	r.dim = []int{8, 16}[r.rng.IntN(2)]
	r.norm = r.one("rmsnorm", "rmsnorm", "layernorm")
	r.act = r.one("silu", "gelu", "gelu_tanh", "relu2", "quick_gelu")
	r.elem = r.one("f32", "f16", "bf16")
	r.kv = r.one("f16", "f32")
	r.bias, r.gated, r.tied = r.coin(), r.coin(), r.coin()
	r.qkNorm, r.postNorm, r.parallel = r.rng.IntN(4) == 0, r.rng.IntN(4) == 0, r.rng.IntN(4) == 0
	r.rope, r.peeled = r.rng.IntN(4) != 0, r.layers > 1 && r.rng.IntN(3) == 0
	r.pairs = r.one("half", "adjacent")
	r.ropeDim = r.dim / (1 + r.rng.IntN(2))
	r.window = []int{0, 0, 2, 3}[r.rng.IntN(4)]
	r.softcap = r.rng.IntN(4) == 0
}

func (r *maker) name(base string) string {
	r.fresh++
	return fmt.Sprintf("%%%s%d", base, r.fresh)
}

// op writes one op and returns the name of its result.
func (r *maker) op(base, format string, args ...any) string {
	out := r.name(base)
	fmt.Fprintf(&r.body, "%s = %s\n", out, fmt.Sprintf(format, args...))
	return out
}

// weight declares a weight of every layer, once, and returns its name.
func (r *maker) weight(name, elem string, shape ...int) string {
	name = r.prefix + name
	r.declare("weight @%s[%d] : %s[%s] from \"layer.{i}.%s\"\n", name, r.layers, elem, sizes(shape), name)
	return "@" + name
}

func sizes(shape []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
}

// declare writes a declaration unless it exists already.
func (r *maker) declare(format string, args ...any) {
	decl := fmt.Sprintf(format, args...)
	if !strings.Contains(r.decls.String(), decl) {
		r.decls.WriteString(decl)
	}
}

func (r *maker) module() string {
	fmt.Fprintf(&r.decls, "weight @embed : %s[40, %d] from \"embed\"\n", r.elem, r.width)
	head := "@embed"
	if !r.tied {
		fmt.Fprintf(&r.decls, "weight @head : %s[40, %d] from \"head\"\n", r.elem, r.width)
		head = "@head"
	}
	fmt.Fprintf(&r.decls, "weight @out_norm : f32[%d] from \"out_norm\"\n", r.width)
	fmt.Fprintf(&r.decls, "state %%kv[%d] : rows {k: %s[%d, %d], v: %s[%d, %d]} paged 64\n", r.layers, r.kv, r.kvHeads, r.dim, r.kv, r.kvHeads, r.dim)
	r.body.WriteString("input %ids : i32[T]\ninput %pos : i32[T]\ninput %out_rows : i32[R]\n")
	if r.rope {
		fmt.Fprintf(&r.body, "%%cs = rope_table %%pos {dim=%d, theta=%d}\n", r.ropeDim, 100+r.rng.IntN(10000))
	}
	x := r.op("x", "embed %%ids, @embed")
	first := 0
	if r.peeled {
		x, first = r.layer(x, "[0]", r.window), 1
	}
	window := r.window
	fmt.Fprintf(&r.body, "%%end = repeat %d..%d (%%in = %s) {\n", first, r.layers, x)
	r.body.WriteString("yield " + r.layer("%in", "", window) + "\n}\n")
	last := r.op("last", "rows %%end, %%out_rows")
	n := r.op("n", "%s %s, @out_norm {eps=1e-05}", r.norm, last)
	logits := r.op("logits", "matmul %s, %s", n, head)
	if r.softcap {
		logits = r.op("logits", "softcap %s {cap=30}", logits)
	}
	return fmt.Sprintf("module random {\n%sgraph decode (T tokens, R out_rows, S sequences) {\n%syield %s\n}\n}\n", r.decls.String(), r.body.String(), logits)
}

// layer writes one decoder layer on x and returns the name of its output; index is the
// suffix of each weight.
func (r *maker) layer(x, index string, window int) string {
	h := r.op("h", "%s %s, %s%s {eps=1e-05}", r.norm, x, r.weight("attn_norm", "f32", r.width), index)
	a := r.attention(h, index, window)
	if r.parallel {
		f := r.mlp(h, index)
		return r.op("y", "add %s, %s", r.op("y", "add %s, %s", x, a), f)
	}
	if r.postNorm {
		a = r.op("a", "%s %s, %s%s {eps=1e-05}", r.norm, a, r.weight("post_norm", "f32", r.width), index)
	}
	x1 := r.op("y", "add %s, %s", x, a)
	if r.crossing {
		c := r.op("h", "%s %s, %s%s {eps=1e-05}", r.norm, x1, r.weight("cross_norm", "f32", r.width), index)
		x1 = r.op("y", "add %s, %s", x1, r.cross(c, index))
	}
	g := r.op("g", "%s %s, %s%s {eps=1e-05}", r.norm, x1, r.weight("ffn_norm", "f32", r.width), index)
	if taps := r.before + 1 + r.after; r.source && taps > 1 {
		g = r.linear(r.op("near", "unfold %s {before=%d, after=%d}", g, r.before, r.after), "conv", index, r.width, r.width*taps)
	}
	return r.op("y", "add %s, %s", x1, r.mlp(g, index))
}

// linear writes a matmul with its bias.
func (r *maker) linear(x, name, index string, n, k int) string {
	y := r.op("l", "matmul %s, %s%s", x, r.weight(name, r.elem, n, k), index)
	if r.bias {
		y = r.op("l", "add %s, %s%s", y, r.weight(name+"_b", "f32", n), index)
	}
	return y
}

func (r *maker) attention(h, index string, window int) string {
	q := r.linear(h, "q", index, r.heads*r.dim, r.width)
	k := r.linear(h, "k", index, r.kvHeads*r.dim, r.width)
	v := r.linear(h, "v", index, r.kvHeads*r.dim, r.width)
	if r.qkNorm {
		q = r.op("q", "rmsnorm %s, %s%s {eps=1e-06, heads=%d}", q, r.weight("q_norm", "f32", r.dim), index, r.heads)
		k = r.op("k", "rmsnorm %s, %s%s {eps=1e-06, heads=%d}", k, r.weight("k_norm", "f32", r.dim), index, r.kvHeads)
	}
	if r.rope {
		q = r.op("q", "rope %s, %%cs {heads=%d, pairs=%s}", q, r.heads, r.pairs)
		k = r.op("k", "rope %s, %%cs {heads=%d, pairs=%s}", k, r.kvHeads, r.pairs)
	}
	fmt.Fprintf(&r.body, "kv_append %%%s%s, %s, %s\n", r.state, index, k, v)
	rel, attrs := r.positions()
	a := r.op("a", "attention %s, %%%s%s%s {heads=%d, kv_heads=%d, window=%d%s}", q, r.state, index, rel, r.heads, r.kvHeads, window, attrs)
	return r.linear(a, "o", index, r.width, r.heads*r.dim)
}

// positions returns the argument and the attributes of attention for positions and order.
func (r *maker) positions() (rel, attrs string) {
	if !r.source {
		attrs = ", causal"
	}
	switch {
	case r.relative:
		r.declare("weight @%srel : f32[8, %d] from \"%srel\"\n", r.prefix, r.heads, r.prefix)
		rel, attrs = ", @"+r.prefix+"rel", attrs+", rel_buckets=8, rel_max=6"
		if r.source {
			attrs += ", rel_bidirectional"
		}
	case !r.rope:
		var slopes []string
		for i := range r.heads {
			slopes = append(slopes, fmt.Sprint(1/float64(int(2)<<i)))
		}
		attrs += ", alibi=[" + strings.Join(slopes, ", ") + "]"
	}
	return rel, attrs
}

func (r *maker) mlp(h, index string) string {
	if r.experts > 0 {
		return r.mixture(h, index)
	}
	u := r.linear(h, "up", index, r.ffn, r.width)
	if r.gated {
		g := r.linear(h, "gate", index, r.ffn, r.width)
		u = r.op("m", "mul %s, %s", r.op("s", "%s %s", r.act, g), u)
	} else {
		u = r.op("m", "%s %s", r.act, u)
	}
	return r.linear(u, "down", index, r.width, r.ffn)
}
