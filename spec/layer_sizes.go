package spec

import (
	"slices"
)

// sizesAt returns the sizes of a layer of the stack, which differ from those of the
// stack where network_structure lists them by layer.
func (m *Model) sizesAt(s *stack, layer int) Hyper {
	h, n := s.hyper, m.Net
	if s.std != "dec" {
		return h
	}
	if d := entryAt(n.HeadDims, layer); d > 0 && d != h.HeadDim {
		if h.RopeDim == h.HeadDim {
			h.RopeDim = d
		}
		h.HeadDim, h.VDim = d, d
	}
	if k := entryAt(n.KVHeads, layer); k > 0 {
		h.KVHeads = k
	}
	if f := entryAt(n.FFNSizes, layer); f > 0 {
		h.FFN = f
	}
	return h
}

// entryAt returns a layer's entry of a repeated list; 0 if the list is empty.
func entryAt(list []int, layer int) int {
	if len(list) == 0 {
		return 0
	}
	return list[layer%len(list)]
}

// checkSizes checks the sizes that network_structure lists by layer.
func (s *Spec) checkSizes(h *Hyper) error {
	n := &s.Network
	for _, k := range []struct {
		key  string
		list []int
	}{{"head_dims", n.HeadDims}, {"kv_heads", n.KVHeads}, {"ffn_sizes", n.FFNSizes}} {
		for i, v := range k.list {
			switch {
			case v < 1 || v > maxWidth:
				return errAt(s.Pos("network_structure."+k.key), "network_structure.%s: have %d for layer %d, want 1 to %d", k.key, v, i, maxWidth)
			case k.key == "kv_heads" && h.Heads%v != 0:
				return errAt(s.Pos("network_structure.kv_heads"), "network_structure.kv_heads: have %d for layer %d, want a divisor of num_attention_heads %d", v, i, h.Heads)
			case k.key == "head_dims" && n.PositionEmbedding == "rope" && v != h.HeadDim && (v%2 != 0 || v < h.RopeDim):
				return errAt(s.Pos("network_structure.head_dims"), "network_structure.head_dims: have %d for layer %d, want an even number of at least %d rotated channels", v, i, h.RopeDim)
			}
		}
	}
	if (len(n.HeadDims) > 0 || len(n.KVHeads) > 0) && (n.LatentAttention || n.encodes()) {
		return errAt(s.Pos("network_structure.head_dims"), "network_structure.head_dims: head sizes by layer need a decoder_only network without latent_attention")
	}
	return nil
}

// keysAt returns the word of kv_pattern for a layer.
func (n *Network) keysAt(layer int) string {
	if p := n.KVPattern; len(p) > 0 {
		return p[layer%len(p)]
	}
	return "own"
}

// storedKeys replaces the word stored of kv_pattern by what the files have.
func (m *Model) storedKeys() {
	if !slices.Contains(m.Net.KVPattern, "stored") {
		return
	}
	out := make([]string, m.Hyper.Layers)
	for i := range out {
		if out[i] = m.Net.keysAt(i); out[i] == "stored" {
			if out[i] = "own"; !m.hasAt("dec.{i}.self_attn.wv.weight", i) && !m.hasAt("dec.{i}.self_attn.qkv.weight", i) {
				out[i] = "key"
			}
		}
	}
	m.Net.KVPattern = out
}

// cacheLayer returns the layer whose KV cache a layer reads; -1 if there is none. With the
// word shared it is the last layer before it with a cache of its own and of the same kind:
// both have a sliding window, or neither has.
func (m *Model) cacheLayer(s *stack, layer int) int {
	at := layer
	for ; at >= 0; at-- {
		own := s.std != "dec" || m.Net.keysAt(at) != "shared"
		if own && m.Net.caches(at) && (at == layer || s.windows[at] > 0 == (s.windows[layer] > 0)) {
			break
		}
	}
	return at
}

// unreadKeys reports whether a tensor is a projection or a norm of keys or values in a
// layer that reads another layer's KV cache. Checkpoints may store them.
func (m *Model) unreadKeys(std string, layer int) bool {
	if layer < 0 || m.Net.keysAt(layer) != "shared" {
		return false
	}
	for _, name := range []string{"wk", "wv", "k_norm"} {
		for _, kind := range []string{".weight", ".bias"} {
			if std == layerName("dec.{i}.self_attn.", layer)+name+kind {
				return true
			}
		}
	}
	return false
}

// checkSharing returns an error for a layer that shares a KV cache with no layer, or
// with one of other sizes.
func (m *Model) checkSharing() error {
	for _, s := range m.stacks() {
		for i := range s.hyper.Layers {
			if s.std != "dec" || m.Net.keysAt(i) != "shared" {
				continue
			}
			from := m.cacheLayer(&s, i)
			switch {
			case from < 0:
				return errAt(m.Spec.Pos("network_structure.kv_pattern"), "network_structure.kv_pattern: layer %d shares a KV cache, but no earlier layer of its kind has one", i)
			case cacheShape(m.sizesAt(&s, from)) != cacheShape(m.sizesAt(&s, i)):
				return errAt(m.Spec.Pos("network_structure.kv_pattern"), "network_structure.kv_pattern: layer %d shares the KV cache of layer %d, which has heads of another number or size", i, from)
			}
		}
	}
	return nil
}

// cacheShape returns the number of KV heads and the sizes of keys and values.
func cacheShape(h Hyper) [3]int { return [3]int{h.KVHeads, h.HeadDim, h.VDim} }
