package spec

import (
	"slices"
	"strings"
)

// layerNames are what the names of a layer's tensors say, by the modules of the layer.
type layerNames struct {
	own, all []string // names of the layer's token mixers, and of all
	unread   []string // parts that files may have and the layer does not read
}

// namesOf returns the names of a layer of the decoder.
func (m *Model) namesOf(layer int) layerNames {
	if n, ok := m.layerNames[layer]; ok {
		return n
	}
	if m.namer == nil {
		m.namer, m.layerNames = newLowerer(m), map[int]layerNames{}
	}
	var n layerNames
	if results, err := m.namer.call(mixerNames, layerName("dec.{i}", layer), nil); err == nil { // else lowering fails by it
		for i, to := range []*[]string{&n.own, &n.all, &n.unread} {
			*to = texts(results[i])
		}
	}
	m.layerNames[layer] = n
	return n
}

// mixerNames is the module that computes layerNames.
const mixerNames = "mixer_names"

// texts returns a list of words.
func texts(v any) (out []string) {
	list, _ := v.([]any)
	for _, x := range list {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// attends reports whether a layer has attention.
func (m *Model) attends(layer int) bool {
	return slices.Contains(m.namesOf(layer).own, attentionName)
}

// attentionName is the name of attention in those of its tensors.
const attentionName = "self_attn"

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
	head, n := layerName("dec.{i}.", layer), m.namesOf(layer)
	prefix, part, ok := strings.Cut(strings.TrimPrefix(std, head), ".")
	other := slices.DeleteFunc(slices.Clone(n.own), func(name string) bool { return name == attentionName })
	if !ok || isLayerNorm(part) || slices.Contains(n.own, prefix) || !slices.Contains(n.all, prefix) || len(other) == 0 {
		return std
	}
	return head + other[0] + "." + part
}

// unreadPart reports whether a tensor is a part that files may have and the layer does not read.
func (m *Model) unreadPart(std string, layer int) bool {
	return layer >= 0 && slices.ContainsFunc(m.namesOf(layer).unread, func(part string) bool {
		return strings.HasPrefix(std, layerName("dec.{i}.", layer)+part+".")
	})
}

// isLayerNorm reports whether a tensor of self_attn is a norm of the layer rather than
// of attention.
func isLayerNorm(part string) bool {
	name, _, _ := strings.Cut(part, ".")
	return name == "pre_norm" || name == "post_norm" || name == "out_norm"
}
