package spec

import (
	"slices"
	"strings"
)

// A mixer is a form of token mixing other than attention.
type mixer struct {
	word   string // in mixer_pattern
	prefix string // first part of its tensors' names within a layer
}

// mixers are all mixers.
var mixers = []*mixer{
	{"linear", "linear_attn"},
	{"selective_scan", "scan"},
	{"ssd", "ssd"},
	{"short_conv", "short_conv"},
	{"rg_lru", "rg_lru"},
	{"time_mix", "time_mix"},
}

// mixerOf returns the mixer of a word of mixer_pattern; nil for attention.
func mixerOf(word string) *mixer {
	for _, mx := range mixers {
		if mx.word == word {
			return mx
		}
	}
	return nil
}

// mixers returns the words of a layer's token mixers.
func (n *Network) mixers(layer int) []string {
	word := "full"
	if p := n.Words("mixer_pattern"); len(p) > 0 {
		word = p[layer%len(p)]
	}
	parallel := n.word("parallel_mixer")
	switch {
	case word == "none":
		return nil
	case mixerOf(word) == nil && parallel != "":
		return []string{word, parallel}
	}
	return []string{word}
}

// attends reports whether a layer has attention.
func (n *Network) attends(layer int) bool {
	return slices.ContainsFunc(n.mixers(layer), func(word string) bool { return mixerOf(word) == nil })
}

// ownName returns the standard name under which a layer stores a mixer's tensor.
// Checkpoints and name maps use one name for the same part of different mixers, such
// as self_attn.wo: it is renamed to the mixer that the layer has.
func (m *Model) ownName(std string, layer int) string {
	if m.Net.Topology() == "encoder_only" && std != "dec.token_embeddings.weight" { // the layers of a decoder, without causal attention
		return strings.Replace(std, "dec.", "enc.", 1)
	}
	if layer < 0 || !strings.HasPrefix(std, "dec.") {
		return std
	}
	head := layerName("dec.{i}.", layer)
	prefix, part, ok := strings.Cut(strings.TrimPrefix(std, head), ".")
	if !ok || isLayerNorm(part) {
		return std
	}
	own := ""
	for _, word := range m.Net.mixers(layer) {
		mx := mixerOf(word)
		switch {
		case mx == nil && prefix == "self_attn", mx != nil && prefix == mx.prefix:
			return std
		case mx != nil:
			own = mx.prefix
		}
	}
	known := prefix == "self_attn" || slices.ContainsFunc(mixers, func(mx *mixer) bool { return mx.prefix == prefix })
	if own == "" || !known {
		return std
	}
	return head + own + "." + part
}

// unreadKeys reports whether a tensor is a projection or a norm of keys or values in a
// layer that reads another layer's KV cache. Checkpoints may store them.
func (m *Model) unreadKeys(std string, layer int) bool {
	if layer < 0 || m.Net.at("kv_pattern", layer) != "shared" {
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

// isLayerNorm reports whether a tensor of self_attn is a norm of the layer rather than
// of attention.
func isLayerNorm(part string) bool {
	name, _, _ := strings.Cut(part, ".")
	return name == "pre_norm" || name == "post_norm" || name == "out_norm"
}
