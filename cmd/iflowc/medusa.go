package main

import "github.com/iflowc/iflowc/runtime/manifest"

// medusa fills in what the runtime needs to know of Medusa heads.
func (m *model) medusa(man *manifest.Manifest) {
	d, s := m.Medusa, &m.Spec.Medusa
	if d == nil {
		return
	}
	man.Medusa = &manifest.Medusa{
		Heads: d.Heads, Layers: d.Layers, Columns: d.Columns, Shared: d.Shared, Tree: d.Plan, Accuracy: d.Accuracy,
		Tokens: d.Tokens, Chained: d.Chained, Threshold: s.Threshold, Alpha: s.Alpha,
	}
	if s.Accept != "exact" {
		man.Medusa.Accept = s.Accept
	}
}

// leaveHeads compiles a model on several groups of devices without its Medusa
// heads: they read the hidden states of the last step, which the next one, under
// way already, overwrites.
func (m *model) leaveHeads() {
	if groups, err := devices(m.Spec.Devices); m.Medusa != nil && err == nil && len(groups) > 1 {
		notice("medusa: the heads are left out on the devices %s; they need one group of devices, such as 0&1", m.Spec.Devices)
		m.Medusa = nil
	}
}
