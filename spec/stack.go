package spec

import (
	"slices"
	"strings"
)

// A stack is the sequence of layers of an encoder or a decoder.
type stack struct {
	std     string // first part of its tensors' standard names: "enc" or "dec"
	hyper   Hyper
	windows []int  // sliding window of each layer, or its chunk as a negative number; 0: neither
	part    string // secondPart for the names of the second part of a layer
}

// stacks returns the network's stacks in the order of execution.
func (m *Model) stacks() []stack {
	var out []stack
	if m.Net.encodes() {
		h := m.Hyper
		if m.Net.decodes() {
			h = m.Encoder
		}
		out = append(out, stack{std: "enc", hyper: h, windows: m.layerWindows(h.Layers)})
	}
	if m.Net.decodes() {
		out = append(out, stack{std: "dec", hyper: m.Hyper, windows: m.layerWindows(m.Hyper.Layers)})
	}
	return out
}

// in returns the standard name of a layer's tensor, such as enc.{i}.self_attn.wq.
func (s *stack) in(name string) string { return s.std + ".{i}." + s.part + name }

// chunked reports whether a layer attends within chunks.
func (n *Network) chunked(layer int) bool {
	p := n.AttentionPattern
	return len(p) > 0 && p[layer%len(p)] == "chunked" && n.caches(layer)
}

// layerWindows returns the sliding window of every layer, or its chunk as a negative
// number; 0 means neither.
func (m *Model) layerWindows(layers int) []int {
	n := m.Net
	out := make([]int, layers)
	for i := range out {
		if n.chunked(i) {
			out[i] = -n.AttentionChunk
			continue
		}
		if p := n.AttentionPattern; len(p) > 0 && p[i%len(p)] == "full" || i < n.WindowLayerStart {
			continue
		}
		if slices.Contains(n.MixerPattern, "sliding") && !n.mixes(i, "sliding") || !n.caches(i) {
			continue
		}
		if n.FullAttnStep > 0 && i%n.FullAttnStep == 0 {
			continue
		}
		if out[i] = n.SlidingWindow; len(n.SlidingWindows) > 0 {
			out[i] = n.SlidingWindows[i%len(n.SlidingWindows)]
		}
	}
	return out
}

// hasExperts reports whether a layer is a mixture of experts.
func (m *Model) hasExperts(layer int) bool {
	word := m.ffnOf(layer)
	return word == "experts" || word == "both"
}

// missingForm reports whether only some layers of the stack have a tensor and this
// layer is not one of them.
func (m *Model) missingForm(s *stack, form string, layer int) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(form, s.std+".{i}."), secondPart)
	if s.std == "dec" {
		if missing, known := m.missingMixer(name, layer); known {
			return missing
		}
	}
	switch {
	case slices.Contains(m.Net.UnevenTensors, name):
		return !m.hasAt(form, layer)
	case strings.HasPrefix(name, "self_attn.pool"):
		return !m.Net.compresses(layer)
	case m.Net.ExpertCount > 0 && strings.HasPrefix(name, "moe."):
		return !m.hasExperts(layer)
	case m.Net.ExpertCount > 0 && strings.HasPrefix(name, "feed_forward.w"):
		return !m.hasDense(layer)
	case strings.HasPrefix(name, "time_mix.v_"): // the first layer has none
		return layer == 0 && !m.hasAt(form, layer)
	case strings.HasPrefix(name, "self_attn.index_"):
		return !m.Net.indexes(layer)
	case m.Net.SkipFirstPreNorm && strings.HasPrefix(name, "self_attn.pre_norm."):
		return layer == 0
	}
	return false
}
