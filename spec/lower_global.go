package spec

import "github.com/iflowc/iflowc/ir/tensor"

// globals are the projections of global tokens.
var globals = []string{"global_wq", "global_wk", "global_wv"}

// withGlobal replaces the output of windowed attention for a text's first tokens, if they
// are global: they see all tokens, by projections of their own (Longformer: Beltagy et al.
// 2020, §3.1). These are computed for every token, and a table of positions selects them.
func (l *lowerer) withGlobal(local string) string {
	if l.Net.GlobalTokens == 0 {
		for _, name := range globals { // no token is global unless the task says so
			l.read[l.s.in("self_attn."+name+".weight")], l.read[l.s.in("self_attn."+name+".bias")] = true, true
		}
		return local
	}
	if l.isGlobal == "" || !l.has(l.s.in("self_attn.global_wq.weight")) {
		l.fail("network_structure.global_tokens: needs an encoder with a table of positions and projections of global tokens")
		return local
	}
	var p [3]string
	for i, name := range globals {
		p[i] = l.affine("g", name, l.s.in("self_attn."+name), l.attendedTo)
	}
	h := l.Hyper
	rows := l.rows("global", l.at, h, true)
	l.t.effect("kv_append", []string{rows, p[1], p[2]})
	all := l.t.op("g", "attention", []string{p[0], rows}, attrs{}.int("heads", h.Heads).int("kv_heads", h.KVHeads))
	rest := l.t.op("g", "shift", []string{l.t.op("g", "scale", []string{l.isGlobal}, attrs{}.num("by", -1))}, attrs{}.num("by", 1))
	return l.t.op("a", "add", []string{l.t.op("a", "mul", []string{local, rest}, nil), l.t.op("g", "mul", []string{all, l.isGlobal}, nil)}, nil)
}

// globalTokens writes, for each token, whether it is global: 1 or 0.
func (l *lowerer) globalTokens() {
	n, std := l.Net.GlobalTokens, "enc.pos_embeddings.weight"
	if n == 0 || !l.has(std) {
		return
	}
	first, rows := l.Net.PosEmbeddingOffset, l.tensors[std].Shape[0]-l.Net.PosEmbeddingOffset
	ones := &cut{shape: []int{rows, 1}, rows: rows, wide: true, apply: func(r *tensor.Transform) *tensor.Transform {
		part := func(lo, hi int, value float64) *tensor.Transform {
			zero := &tensor.Transform{Op: "scale", Args: []*tensor.Transform{apply("cols", apply("rows", r, first+lo, first+hi), 0, 1)}, Nums: []float64{0}}
			return &tensor.Transform{Op: "add", Args: []*tensor.Transform{zero}, Nums: []float64{value}}
		}
		return &tensor.Transform{Op: "concat", Args: []*tensor.Transform{part(0, n, 1), part(n, rows, 0)}}
	}}
	l.isGlobal = l.t.op("is_global", "embed", []string{"%pos", l.weight("is_global", std, ones)}, nil)
}
