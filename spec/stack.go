package spec

import (
	"slices"
)

// A stack is the sequence of layers of an encoder or a decoder.
type stack struct {
	std     string // first part of its tensors' standard names: "enc" or "dec"
	hyper   Hyper
	windows []int // sliding window of each layer, or its chunk as a negative number; 0: neither
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
