package spec

import "github.com/iflowc/iflowc/ir/tensor"

// globals returns what global tokens need of attention on x; nil if there are none.
func (l *lowerer) globals(x string) any {
	if l.Net.GlobalTokens == 0 {
		return nil
	}
	if l.isGlobal == "" || !l.has(l.s.in("self_attn.global_wq.weight")) {
		l.fail("network_structure.global_tokens: needs an encoder with a table of positions and projections of global tokens")
		return nil
	}
	var out []any
	for _, name := range []string{x, l.isGlobal, l.rows("global", l.at, l.Hyper, true)} {
		out = append(out, l.t.value(name))
	}
	return out
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
