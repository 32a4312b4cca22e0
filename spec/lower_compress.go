package spec

import (
	"fmt"
	"strings"
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
