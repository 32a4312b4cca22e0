package spec

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir"
)

// compression returns the word of a layer's compression.
func (n *Network) compression(layer int) string {
	if p := n.Compression.Pattern; len(p) > 0 {
		return p[layer%len(p)]
	}
	return "none"
}

func (n *Network) compresses(layer int) bool { return n.compression(layer) != "none" }

// windowRows returns the rows of a layer's compressed windows.
func (n *Network) windowRows(layer int) int {
	if n.compression(layer) == "overlapping" {
		return n.Compression.OverlapEvery
	}
	return n.Compression.EachEvery
}

// checkSharedKV checks the hyper-parameters of attention with one head of keys that are
// also the values.
func (s *Spec) checkSharedKV() error {
	n := &s.Network
	if !n.SharedKV {
		return nil
	}
	heads, _ := number(s.Config["num_attention_heads"])
	kv, has := number(s.Config["num_key_value_heads"])
	var err error
	switch c := n.Compression; {
	case has && kv != 1:
		err = fmt.Errorf("num_key_value_heads %v, want 1", kv)
	case n.OutGroups < 1 || int(heads)%n.OutGroups != 0:
		err = fmt.Errorf("out_groups %d, want a divisor of num_attention_heads %v", n.OutGroups, heads)
	case n.SlidingWindow < 1:
		err = fmt.Errorf("sliding_window is %d, want 1 or more", n.SlidingWindow)
	case contains(c.Pattern, "overlapping"):
		x := n.Indexer
		err = positive("compression.overlapping_every", c.OverlapEvery, "indexer.heads", x.Heads, "indexer.head_dim", x.HeadDim, "indexer.top_k", x.TopK)
	}
	if err == nil && contains(n.Compression.Pattern, "separate") {
		err = positive("compression.separate_every", n.Compression.EachEvery)
	}
	if err != nil {
		return errAt(s.Pos("network_structure.shared_key_value"), "network_structure.shared_key_value: %v", err)
	}
	return nil
}

// sharedKVShape returns the shape of a layer's tensor of such attention or of
// hyper-connections, and whether it is one.
func (m *Model) sharedKVShape(form string, layer int) (shape, bool) {
	n, h, name := m.Net, m.Hyper, strings.TrimPrefix(form, "dec.{i}.")
	if k := n.Streams.Count; k > 0 {
		all := k * (k + 2)
		for _, std := range []string{"self_attn_streams", "feed_forward_streams", "dec.streams_out"} {
			scales := 3
			if std == "dec.streams_out" {
				all, scales = k, 1
			}
			if dims := map[string][]int{std + ".weight": {all, k * h.Hidden}, std + "_base.weight": {all}, std + "_scale.weight": {scales}}[name]; dims != nil {
				return shape{dims: dims, why: fmt.Sprintf("streams.count %d, hidden_size %d", k, h.Hidden)}, true
			}
		}
	}
	if !n.SharedKV || layer < 0 {
		return shape{}, false
	}
	rows, halves, x := n.windowRows(layer), 1, n.Indexer
	if n.compression(layer) == "overlapping" {
		halves = 2
	}
	d := h.HeadDim
	dims := map[string][]int{
		"wkv.weight": {d, h.Hidden}, "kv_norm.weight": {d}, "sinks.weight": {h.Heads},
		"pool_wkv.weight": {halves * d, h.Hidden}, "pool_wgate.weight": {halves * d, h.Hidden}, "pool.bias": {rows, halves * d}, "pool_norm.weight": {d},
		"index_pool_wkv.weight": {2 * x.HeadDim, h.Hidden}, "index_pool_wgate.weight": {2 * x.HeadDim, h.Hidden}, "index_pool.bias": {rows, 2 * x.HeadDim},
		"index_pool_norm.weight": {x.HeadDim}, "index_weights.weight": {x.Heads, h.Hidden},
	}[strings.TrimPrefix(name, "self_attn.")]
	return shape{dims: dims, why: fmt.Sprintf("head_dim %d, windows of %d rows, indexer.heads %d, indexer.head_dim %d, hidden_size %d", d, rows, x.Heads, x.HeadDim, h.Hidden)}, dims != nil
}

// requiredSharedKV returns the tensors that a layer of such attention needs.
func (m *Model) requiredSharedKV(sa string, layer int) []string {
	names := []string{"wq_a.weight", "q_a_norm.weight", "wq_b.weight", "wkv.weight", "kv_norm.weight", "sinks.weight", "wo_a.weight", "wo_b.weight"}
	pool := []string{"pool_wkv.weight", "pool_wgate.weight", "pool.bias", "pool_norm.weight"}
	switch m.Net.compression(layer) {
	case "overlapping":
		names = append(names, "index_wq.weight", "index_weights.weight")
		for _, name := range pool {
			names = append(names, name, "index_"+name)
		}
	case "separate":
		names = append(names, pool...)
	}
	var out []string
	for _, name := range names {
		out = append(out, sa+name)
	}
	return out
}

// sharedKVAttention writes attention whose keys, one head, are also the values, between
// low-rank projections of queries and outputs. Values are rotated with the keys, so the
// output is rotated back.
func (l *lowerer) sharedKVAttention(x string) string {
	h, sa := l.Hyper, l.s.in("self_attn.")
	c := l.latentNorm("qa", "q_a_norm", l.affine("qa", "wq_a", sa+"wq_a", x))
	q := l.affine("q", "wq_b", sa+"wq_b", c)
	q = l.rope("qr", l.normWith("qn", "rms", q, "", "", l.Net.NormEps, 0, h.Heads), l.ropeKind(l.at), h.Heads)
	kv := l.latentNorm("key", "kv_norm", l.affine("key", "wkv", sa+"wkv", x))
	kv = l.rope("keyr", kv, l.ropeKind(l.at), 1)
	cache := l.cache(false)
	l.t.effect("kv_append", []string{cache, kv, kv})
	sinks := l.weight("sinks", sa+"sinks.weight", nil)
	a := l.attentionAttrs()
	var o string
	if word := l.Net.compression(l.at); word == "none" {
		o = l.t.op("a", "attention", []string{q, cache, sinks}, a.flag("sinks"))
	} else {
		near := l.t.op("near", "attention", []string{q, cache}, a.flag("lse"))
		far := l.farAttention(x, q, c, word)
		o = l.t.op("a", "merge_attention", []string{near, far, sinks}, attrs{}.int("heads", h.Heads))
	}
	return l.groupedOutput(l.ropeWith("ar", o, l.cs[turn{back: true}.name(l.ropeKind(l.at))], h.Heads))
}

// farAttention writes the compression of rows, and attention to the compressed rows.
func (l *lowerer) farAttention(x, q, c, word string) string {
	h, n, sa := l.Hyper, l.Net, l.s.in("self_attn.")
	every := n.windowRows(l.at)
	if word == "overlapping" {
		l.indexRows()
	}
	entry := l.compressed("pool", sa+"pool", x, h.HeadDim, every, word, l.ropeKind(l.at))
	kv := l.stateType()
	rows := l.stateOf("compressed", l.at, &ir.StateType{Page: pageRows, Fields: []ir.Field{{Name: "k", Elem: kv.OfKeys(), Shape: []int{1, h.HeadDim}}, {Name: "v", Elem: kv, Shape: []int{1, h.HeadDim}}}})
	l.t.effect("kv_append", []string{rows, entry, entry})
	args, a := []string{q, rows}, attrs{}.int("heads", h.Heads).int("kv_heads", 1).flag("causal").flag("lse")
	if l.attnScale(l.at) != 0 {
		a = a.num("scale", l.attnScale(l.at))
	}
	if word == "separate" {
		return l.t.op("far", "attention", args, a.int("every", every))
	}
	k := l.compressed("index_pool", sa+"index_pool", x, n.Indexer.HeadDim, every, word, l.ropeKind(l.at))
	iq := l.affine("iq", "index_wq", sa+"index_wq", c)
	iq = l.ropeWith("iqr", iq, l.cs[l.ropeKind(l.at)], n.Indexer.Heads)
	return l.t.op("far", "attention", append(args, l.choose(iq, k, x, every)), a.flag("selected"))
}

// compressed writes the compressed row of each token's window of x, as a key of the given
// width at the position of the window's first row.
func (l *lowerer) compressed(name, std, x string, dim, every int, word, rope string) string {
	kv, gate := l.affine(name, name+"_wkv", std+"_wkv", x), l.affine(name, name+"_wgate", std+"_wgate", x)
	a, size := attrs{}.int("every", every), 4
	if word == "overlapping" {
		a, size = a.flag("overlap"), 10
	}
	state := l.fixed(name+"_"+word, "s", size, dim)
	bias := l.weight(name+"_bias", std+".bias", nil)
	y := l.t.op(name, "pool_rows", []string{state, kv, gate, bias}, a)
	y = l.normWith(name, "rms", y, l.weight(name+"_norm", std+"_norm.weight", nil), "", l.Net.NormEps, 0, 1)
	return l.ropeWith(name, y, l.cs[turn{shift: 1 - every}.name(rope)], 1)
}

// ropeWith rotates the last channels of each head by a table.
func (l *lowerer) ropeWith(hint, x, table string, heads int) string {
	if table == "" {
		return x
	}
	width := l.Net.Indexer.HeadDim
	if hint != "iqr" && hint != "index_pool" {
		width = l.Hyper.HeadDim
	}
	a := attrs{}.int("heads", heads)
	if l.Net.QKColumnOrder != 2 {
		a = a.word("pairs", "adjacent")
	}
	if off := width - l.Hyper.RopeDim; off > 0 {
		a = a.int("offset", off)
	}
	return l.t.op(hint, "rope", []string{x, table}, a)
}

// groupedOutput projects groups of heads by matrices of their own, and the results by one
// (DeepSeek-V4, §2.3.1).
func (l *lowerer) groupedOutput(o string) string {
	sa, n := l.s.in("self_attn."), l.Net.OutGroups
	std := sa + "wo_a"
	rows := l.tensors[layerName(std+".weight", l.at)].Shape[0] / n
	var hints, parts []string
	var sizes []int
	for i := range n {
		hints, sizes = append(hints, fmt.Sprintf("g%d", i)), append(sizes, l.Hyper.Heads*l.Hyper.VDim/n)
	}
	for i, g := range l.splitInto(o, hints, sizes) {
		parts = append(parts, l.linear("og", fmt.Sprintf("wo_a_%d", i), std, g, rowsCut(i*rows, (i+1)*rows)))
	}
	if n > 1 {
		parts[0] = l.t.op("og", "concat", parts, nil)
	}
	return l.affine("o", "wo_b", sa+"wo_b", parts[0])
}
