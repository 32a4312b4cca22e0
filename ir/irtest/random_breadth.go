package irtest

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// RandomMoE is Random with a mixture of experts in place of each feed-forward network: with
// and without groups, score biases, biases and gates.
func RandomMoE(seed uint64) *ir.Module {
	r := newMaker(seed)
	r.experts = []int{2, 4, 6}[r.rng.IntN(3)]
	r.topK = 1 + r.rng.IntN(2)
	return mustParse(r.module())
}

// RandomSeq2Seq returns a random small encoder-decoder in two graphs: encode, which yields
// %hidden, and decode, which has cross-attention.
func RandomSeq2Seq(seed uint64) *ir.Module {
	r := newMaker(seed)
	r.parallel, r.peeled = false, false
	r.relative = !r.rope && r.coin()
	r.before, r.after = r.rng.IntN(3), r.rng.IntN(3)
	return mustParse(r.seq2seq())
}

func mustParse(text string) *ir.Module {
	m, err := ir.Parse("random.ir", []byte(text), ops.Table)
	if err != nil {
		panic("bug: random module: " + err.Error())
	}
	return m
}

// mixture writes a router and its experts.
func (r *maker) mixture(h, index string) string {
	logits := r.op("r", "matmul %s, %s%s", h, r.weight("router", r.elem, r.experts, r.width), index)
	bias, attrs := "", fmt.Sprintf("top_k=%d", r.topK)
	switch r.act {
	case "silu":
		attrs += ", score=sigmoid, norm, scale=1.5"
		bias = ", " + r.weight("router_bias", "f32", r.experts) + index
	case "gelu":
		attrs += ", norm"
	case "relu2":
		attrs += ", score=softmax_topk"
	}
	if r.experts == 4 && r.act != "relu2" {
		attrs += ", groups=2, top_groups=1"
	}
	route := r.op("r", "route %s%s {%s}", logits, bias, attrs)
	var args []string
	gate := func(name string, shape ...int) {
		r.declare("weight @%s[%d, %d] : %s[%s] from \"layer.{i}.{j}.%s\"\n", name, r.layers, r.experts, r.elem, sizes(shape), name)
		args = append(args, "@"+name+index)
	}
	gate("e_gate", r.ffn, r.width)
	act := map[string]string{"silu": "silu", "gelu": "gelu", "gelu_tanh": "gelu_tanh", "relu2": "relu", "quick_gelu": "silu"}[r.act]
	if r.gated {
		gate("e_up", r.ffn, r.width)
		act += ", gated"
	}
	gate("e_down", r.width, r.ffn)
	if r.bias {
		act += ", biased"
		gate("e_gate_b", r.ffn)
		if r.gated {
			gate("e_up_b", r.ffn)
		}
		gate("e_down_b", r.width)
	}
	return r.op("m", "experts %s, %s, %s {act=%s}", h, route, strings.Join(args, ", "), act)
}

// cross writes the cross-attention of a decoder layer.
func (r *maker) cross(h, index string) string {
	q := r.linear(h, "xq", index, r.heads*r.dim, r.width)
	a := r.op("a", "attention %s, %%cross%s {heads=%d, kv_heads=%d, cross}", q, index, r.heads, r.kvHeads)
	return r.linear(a, "xo", index, r.width, r.heads*r.dim)
}

// stateDecl declares a state of every layer.
func (r *maker) stateDecl(name, tail string) {
	r.declare("state %%%s[%d] : rows {k: %s[%d, %d], v: %s[%d, %d]} paged 64%s\n", name, r.layers, r.kv, r.kvHeads, r.dim, r.kv, r.kvHeads, r.dim, tail)
}

// stack writes the embedding and all layers and returns the output's name.
func (r *maker) stack() string {
	if r.rope {
		fmt.Fprintf(&r.body, "%%cs = rope_table %%pos {dim=%d}\n", r.ropeDim)
	}
	x := r.op("x", "embed %%ids, @embed")
	fmt.Fprintf(&r.body, "%%end = repeat 0..%d (%%in = %s) {\n", r.layers, x)
	r.body.WriteString("yield " + r.layer("%in", "", r.window) + "\n}\n")
	return "%end"
}

func (r *maker) seq2seq() string {
	r.declare("weight @embed : %s[40, %d] from \"embed\"\n", r.elem, r.width)
	r.stateDecl("kv", "")
	r.stateDecl("enc", " source")
	r.stateDecl("cross", " source")

	r.state, r.prefix, r.source = "enc", "enc_", true
	end := r.stack()
	r.prefix, r.source = "", false
	fmt.Fprintf(&r.body, "%%hidden = repeat 0..%d (%%out = %s) {\n", r.layers, end)
	k := r.linear("%out", "xk", "", r.kvHeads*r.dim, r.width)
	v := r.linear("%out", "xv", "", r.kvHeads*r.dim, r.width)
	fmt.Fprintf(&r.body, "kv_append %%cross, %s, %s\nyield %%out\n}\n", k, v)
	encode := r.body.String()
	r.body.Reset()

	r.state, r.crossing = "kv", true
	last := r.op("last", "rows %s, %%out_rows", r.stack())
	logits := r.op("logits", "matmul %s, @embed", last)
	return fmt.Sprintf("module random {\n%sgraph encode (T tokens, R out_rows, S sequences) {\ninput %%ids : i32[T]\ninput %%pos : i32[T]\n%syield %%hidden\n}\n"+
		"graph decode (T tokens, R out_rows, S sequences) {\ninput %%ids : i32[T]\ninput %%pos : i32[T]\ninput %%out_rows : i32[R]\n%syield %s\n}\n}\n",
		r.decls.String(), encode, r.body.String(), logits)
}
