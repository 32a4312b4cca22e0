package spec

// crosses reports whether the stack's layers have cross-attention.
func (l *lowerer) crosses() bool { return l.s.std == "dec" && l.Net.encodes() }

// cross writes the cross-attention of a decoder layer, with its norms and
// residual addition.
func (l *lowerer) cross(x string) string {
	ca, h := l.s.in("cross_attn."), x
	h, _ = l.norm("ch", "cross_norm", ca+"pre_norm", h, 0)
	q := l.affine("cq", "cross_wq", ca+"wq", h)
	a := attrs{}.int("heads", l.Hyper.Heads).int("kv_heads", l.Hyper.KVHeads).flag("cross")
	if l.Net.AttnScale != 0 {
		a = a.num("scale", l.Net.AttnScale)
	}
	c := l.t.op("c", "attention", []string{q, l.rows("cross", l.at, l.Hyper, true)}, a)
	c = l.affine("c", "cross_wo", ca+"wo", c)
	x = l.t.op("xc", "add", []string{x, c}, nil)
	x, _ = l.postNorm("xc", "cross_post_norm", ca+"post_norm", x)
	return x
}

// writeCross writes, at the end of the encoder's graph, the keys and values for
// the decoder's cross-attention.
func (l *lowerer) writeCross(x string) {
	var dec *stack
	for _, s := range l.stacks() {
		if s.std == "dec" {
			dec = &s
		}
	}
	enc, text, at := l.s, l.t, l.at
	l.s, l.Hyper, l.at = dec, dec.hyper, 0
	defer func() { l.s, l.Hyper, l.t, l.at = enc, enc.hyper, text, at }()
	ca := dec.in("cross_attn.")
	for i := range dec.hyper.Layers {
		l.at = i
		l.t.begin(i)
		k := l.affine("ck", "cross_wk", ca+"wk", x)
		v := l.affine("cv", "cross_wv", ca+"wv", x)
		l.t.effect("kv_append", []string{l.rows("cross", i, l.Hyper, true), k, v})
		l.t.end()
	}
}
