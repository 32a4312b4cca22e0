package spec

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// attention writes the self-attention of a layer on x, without the
// residual addition.
func (l *lowerer) attention(x string) string {
	l.cache(l.s.part != "") // in front of the states of the parts
	if l.Net.LatentAttention {
		return l.attend(l.latentQueryKeyValue(x, l.ropeKind(l.at)), l.ownGate(x))
	}
	if l.Net.SharedKV {
		return l.sharedKVAttention(x)
	}
	h := l.Hyper
	l.attendedTo = x
	q, k, v, gate := l.queryKeyValue(x)
	if v != "" && l.Net.ValueNorm != "none" {
		v = l.normOp("vn", l.Net.ValueNorm, v, "", "", 0, h.KVHeads)
	}
	if k != "" {
		k = l.scaled("k", k, l.Net.KeyScale)
	}
	norm := func(position string) {
		if l.Net.QKNormPosition != position || l.Net.QKNorm == "rope_layers" && l.ropeKind(l.at) == ropeNone {
			return
		}
		if q = l.qkNorm(q, "q", h.Heads); k != "" {
			k = l.qkNorm(k, "k", h.KVHeads)
		}
	}
	norm("before_rope")
	for _, p := range []*string{&q, &k, &v} {
		if c := l.Net.QKVClamp; c > 0 && *p != "" {
			*p = l.t.op("clip", "clamp", []string{*p}, attrs{}.num("lo", -c).num("hi", c))
		}
	}
	if q = l.rope("qr", q, l.ropeKind(l.at), h.Heads); k != "" {
		k = l.rope("kr", k, l.ropeKind(l.at), h.KVHeads)
	}
	norm("after_rope")
	if l.temperature != "" && (l.ropeKind(l.at) == ropeNone || l.Net.TemperatureRope) {
		q = l.t.op("q", "mul", []string{q, l.temperature}, nil)
	}
	if l.Net.Differential {
		return l.attendTwice([3]string{q, k, v})
	}
	return l.attend([3]string{q, k, v}, gate)
}

// attend writes the token's row of the KV cache, attention on the cache, the gate on
// its output (logits; "" if there is none) and the output projection.
func (l *lowerer) attend(qkv [3]string, gate string) string {
	kv := l.cache(l.s.part != "")
	if qkv[1] != "" {
		l.t.effect("kv_append", []string{kv, qkv[1], qkv[2]})
	}
	args := []string{qkv[0], kv}
	a := l.attentionAttrs()
	if std := l.s.in("self_attn.relative_bias.weight"); l.has(std) {
		args = append(args, l.weight("rel", std, nil))
		buckets := l.tensors[layerName(std, l.at)].Shape[0]
		a = a.int("rel_buckets", buckets).int("rel_max", l.Net.RelMaxDistance)
		l.checkBuckets(buckets)
		if l.s.std == "enc" {
			a = a.flag("rel_bidirectional")
		}
	}
	tables, content := l.disentangled()
	args, a = append(args, tables...), append(a, content...)
	sa := l.s.in("self_attn.")
	if l.Net.AttentionSinks {
		args, a = append(args, l.weight("sinks", sa+"sinks.weight", nil)), a.flag("sinks")
	}
	if l.Net.indexer(l.at) != "none" {
		args, a = append(args, l.selected), a.flag("selected")
	}
	o := l.withGlobal(l.t.op("a", "attention", args, a))
	if gate != "" {
		o = l.t.op("a", "mul", []string{o, l.t.op("ag", "sigmoid", []string{gate}, nil)}, nil)
	}
	o = l.outNorm("a", "attn_sub_norm", sa+"sub_norm", o)
	o = l.linear("o", "wo", sa+"wo", o, nil)
	return l.bias("o", "wo_bias", sa+"wo", o, nil)
}

func (l *lowerer) attentionAttrs() attrs {
	n, h := l.Net, l.Hyper
	a := attrs{}.int("heads", h.Heads).int("kv_heads", h.KVHeads)
	if l.s.std == "dec" {
		a = a.flag("causal")
	}
	if l.attnScale(l.at) != 0 {
		a = a.num("scale", l.attnScale(l.at))
	}
	switch w := l.windows[l.at]; {
	case w > 0:
		a = a.int("window", w)
	case w < 0:
		a = a.int("chunk", -w)
	}
	if n.GlobalTokens > 0 && l.s.std == "enc" {
		a = a.int("global", n.GlobalTokens)
	}
	if n.AttnSoftcap > 0 {
		a = a.num("softcap", n.AttnSoftcap)
	}
	if n.PositionEmbedding == "alibi" {
		a = a.nums("alibi", alibiSlopes(h.Heads, n.AlibiSlopeScale))
	}
	return a
}

// ownGate projects the gate on the output of attention by its own matrix, or returns ""
// if the model has none. Rows for whole heads are repeated for each of their channels.
func (l *lowerer) ownGate(x string) string {
	if l.Net.AttnGate != "own" {
		return ""
	}
	std, h := l.s.in("self_attn.wg"), l.Hyper
	rows := l.tensors[layerName(std+".weight", l.at)].Shape[0]
	var c *cut
	switch rows {
	case h.Heads * h.VDim:
	case h.Heads:
		c = &cut{rows: h.Heads * h.VDim, apply: func(r *tensor.Transform) *tensor.Transform { return apply("repeat_rows", r, h.VDim) }}
	default:
		l.fail("tensor %s.weight: %d rows, want one per head, %d, or per channel, %d", layerName(std, l.at), rows, h.Heads, h.Heads*h.VDim)
	}
	return l.bias("ag", "wg_bias", std, l.linear("ag", "wg", std, x, c), c)
}

// queryKeyValue writes the three projections, and the gate on the output of attention,
// "" if there is none. A layer that reads another one's KV cache has neither keys nor
// values; keys may be the values as well. If the checkpoint stores them as one fused matrix, each weight is
// a cut of it.
func (l *lowerer) queryKeyValue(x string) (q, k, v, gate string) {
	type part struct {
		name, std string
		c         *cut
	}
	sa := l.s.in("self_attn.")
	parts := []part{{"q", sa + "wq", nil}, {"k", sa + "wk", nil}, {"v", sa + "wv", nil}}
	if l.has(sa + "qkv.weight") {
		for i, c := range l.qkvCuts() {
			parts[i].std, parts[i].c = sa+"qkv", c
		}
	}
	keys := "own"
	if l.s.std == "dec" {
		keys = l.Net.keysAt(l.at)
	}
	parts = parts[:map[string]int{"own": 3, "key": 2, "shared": 1}[keys]]
	if h := l.Hyper; l.Net.AttnGate == "query" {
		parts[0].c = groupCut(h.Heads, 2*h.HeadDim, 0, h.HeadDim)
		parts = append(parts, part{"g", sa + "wq", groupCut(h.Heads, 2*h.HeadDim, h.HeadDim, 2*h.HeadDim)})
	}
	out := map[string]string{}
	for _, p := range parts {
		out[p.name] = l.linear(p.name, "w"+p.name, p.std, x, p.c)
	}
	for _, p := range parts {
		if own := sa + "w" + p.name; p.std != own && l.has(own+".bias") { // of a part of a fused matrix
			p.std, p.c = own, nil
		}
		out[p.name] = l.bias(p.name, "w"+p.name+"_bias", p.std, out[p.name], p.c)
	}
	if gate = l.ownGate(x); gate == "" {
		gate = out["g"]
	}
	if keys == "key" {
		out["v"] = out["k"]
	}
	return out["q"], out["k"], out["v"], gate
}

// qkvCuts returns the rows of q, k and v in a fused matrix. Format 0 groups the
// rows by KV head: its query heads, its key head, its value head. Format 1 stores
// all of q, then k, then v. Format 2 stores four blocks of q, v and k, because
// CodeGen was trained on four devices.
func (l *lowerer) qkvCuts() []*cut {
	h := l.Hyper
	hd, kv := h.HeadDim, h.KVHeads
	q := h.Heads / kv * hd // query rows per group
	if l.Net.QKVFormat == 0 {
		group := q + 2*hd
		return []*cut{groupCut(kv, group, 0, q), groupCut(kv, group, q, q+hd), groupCut(kv, group, q+hd, group)}
	}
	if l.Net.QKVFormat == 2 {
		part := h.Heads * hd / 4
		if h.Heads*hd%4 != 0 || kv != h.Heads {
			l.fail("network_structure.qkv_format: 2 needs as many KV heads as heads, and %d channels divisible into four blocks", h.Heads*hd)
		}
		return []*cut{groupCut(4, 3*part, 0, part), groupCut(4, 3*part, 2*part, 3*part), groupCut(4, 3*part, part, 2*part)}
	}
	all := kv * q
	return []*cut{rowsCut(0, all), rowsCut(all, all+kv*hd), rowsCut(all+kv*hd, all+2*kv*hd)}
}

// qkNorm normalizes queries or keys (which is "q" or "k"): per head with shared
// or individual weights, or over all heads together. With qk_norm auto, the shape
// of the weight decides.
func (l *lowerer) qkNorm(x, which string, heads int) string {
	n := l.Net
	std := l.s.in("self_attn." + which + "_norm")
	if n.QKNorm == "none" {
		return x
	}
	function := n.QKNormFunction
	if function == "" {
		function = n.NormalizationFunction
	}
	name, hint := which+"_norm", which+"n"
	if function == "l2" || n.QKNorm == "rope_layers" {
		return l.normOp(hint, function, x, "", "", 0, heads)
	}
	if l.has(strings.Replace(std, which+"_norm", which+"_norm.0", 1) + ".weight") {
		return l.perHeadNorm(hint, function, x, l.weightOfHeads(name, std, heads), heads)
	}
	t, ok := l.tensors[layerName(std+".weight", l.at)]
	if !ok {
		if n.QKNorm == "head" || n.QKNorm == "full" {
			l.fail("network_structure.qk_norm: %s, but no tensor is mapped to %s.weight", n.QKNorm, std)
		}
		return x
	}
	size := heads * l.Hyper.HeadDim
	switch {
	case len(t.Shape) == 2:
		return l.perHeadNorm(hint, function, x, l.weight(name, std+".weight", rowVector(size)), heads)
	case t.Shape[0] == l.Hyper.HeadDim && n.QKNorm != "full":
		return l.normOp(hint, function, x, l.weight(name, std+".weight", nil), l.weight(name+"_bias", std+".bias", nil), n.QKNormBase, heads)
	case n.QKNorm == "head":
		return l.perHeadNorm(hint, function, x, l.weight(name, std+".weight", nil), heads)
	}
	return l.normOp(hint, function, x, l.weight(name, std+".weight", nil), l.weight(name+"_bias", std+".bias", nil), n.QKNormBase, 1)
}

// perHeadNorm normalizes each head and multiplies it by weights of its own.
func (l *lowerer) perHeadNorm(hint, function, x, w string, heads int) string {
	return l.t.op(hint, "mul", []string{l.normOp(hint, function, x, "", "", 0, heads), w}, nil)
}

// weightOfHeads concatenates norm weights that are stored as one tensor per head.
func (l *lowerer) weightOfHeads(name, std string, heads int) string {
	e := l.elementOf(name, std+".0.weight")
	e.std, e.shape = std+".weight", []int{heads * l.Hyper.HeadDim}
	e.transform = &tensor.Transform{Op: "concat"}
	for j := range heads {
		t, ok := l.tensors[fmt.Sprintf("%s.%d.weight", layerName(std, l.at), j)]
		if !ok {
			l.fail("tensor %s.%d.weight: missing; want one for each of %d heads", std, j, heads)
			return "@" + name
		}
		e.transform.Args = append(e.transform.Args, tensor.Source(strings.ReplaceAll(t.Pattern, "{j}", fmt.Sprint(j))))
	}
	return l.declare(e)
}

// checkBuckets returns an error if the widths of relative position buckets do not
// increase (Raffel et al. 2020, §2.1). Half of the buckets of a direction have a
// width of one position.
func (l *lowerer) checkBuckets(buckets int) {
	n := buckets
	if l.s.std == "enc" {
		n /= 2
	}
	if l.s.std == "enc" && buckets%2 != 0 || n < 2 || l.Net.RelMaxDistance <= n/2 {
		l.fail("relative positions: %d buckets up to a distance of %d; want an even number of buckets (4 or more in an encoder), and a distance above half of the buckets of a direction", buckets, l.Net.RelMaxDistance)
	}
}
