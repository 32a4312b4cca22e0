package main

import "github.com/iflowc/iflowc/runtime/artifact/manifest"

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
