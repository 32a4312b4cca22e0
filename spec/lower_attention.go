package spec

// attention writes the self-attention of a layer on x, without the residual addition.
func (l *lowerer) attention(x string) string {
	kv := l.cache(l.s.part != "") // in front of the states of the parts
	rope, args := l.cs[l.ropeKind(l.at)], l.attentionArgs(x)
	switch {
	case l.Net.LatentAttention:
		without(args, "dim", "keys", "decodes", "%globals")
		args["index"] = l.Net.indexer(l.at)
		out := l.call("latent_attention", "self_attn", []string{x, kv, rope, l.selected}, args)
		if l.Net.indexes(l.at) {
			l.selected = out[1]
		}
		return out[0]
	case l.Net.SharedKV:
		return l.sharedKeyAttention(x, kv, rope, args)
	case l.Net.Differential:
		without(args, "keys", "decodes", "%globals")
		args["layer"] = l.at
		return l.call("differential_attention", "self_attn", []string{x, kv, l.cache(true), rope, l.temperature}, args)[0]
	}
	return l.call("self_attention", "self_attn", []string{x, kv, rope, l.temperature}, args)[0]
}

// without removes arguments that a module does not have.
func without(args map[string]any, names ...string) {
	for _, n := range names {
		delete(args, n)
	}
}

// sharedKeyAttention writes attention whose keys, one head, are also the values.
func (l *lowerer) sharedKeyAttention(x, kv, rope string, args map[string]any) string {
	n, kind := l.Net, l.ropeKind(l.at)
	every := 1
	if n.compresses(l.at) {
		every = n.windowRows(l.at)
	}
	without(args, "v_dim", "kv_heads", "keys", "decodes", "%globals")
	args["kind"], args["every"], args["rope_dim"] = n.compression(l.at), every, l.Hyper.RopeDim
	args["index"] = []any{n.Indexer.Heads, n.Indexer.HeadDim, n.Indexer.TopK}
	values := []string{x, kv, rope, l.cs[turn{back: true}.name(kind)], l.cs[turn{shift: 1 - every}.name(kind)]}
	return l.call("shared_key_attention", "self_attn", values, args)[0]
}

// attentionArgs are the arguments of modules of attention on x that are no values.
func (l *lowerer) attentionArgs(x string) map[string]any {
	h := l.Hyper
	keys := "own"
	if l.s.std == "dec" {
		keys = l.Net.keysAt(l.at)
	}
	return map[string]any{"heads": h.Heads, "kv_heads": h.KVHeads, "dim": h.HeadDim, "v_dim": h.VDim, "window": l.windows[l.at], "scale": l.attnScale(l.at),
		"keys": keys, "decodes": l.s.std == "dec", "%globals": l.globals(x)}
}
