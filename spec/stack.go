package spec

import ()

// A stack is the sequence of layers of an encoder or a decoder.
type stack struct {
	std   string // first part of its tensors' standard names: "enc" or "dec"
	hyper Hyper
}

// stacks returns the network's stacks in the order of execution.
func (m *Model) stacks() []stack {
	var out []stack
	if m.Net.encodes() {
		h := m.Hyper
		if m.Net.decodes() {
			h = m.Encoder
		}
		out = append(out, stack{std: "enc", hyper: h})
	}
	if m.Net.decodes() {
		out = append(out, stack{std: "dec", hyper: m.Hyper})
	}
	return out
}
