package ir

import "strconv"

// Names generates names that are unused in a module.
type Names struct{ used map[string]bool }

// NewNames returns a Names that avoids every name of the module: weights, states and
// the values of all graphs.
func NewNames(m *Module) *Names {
	n := &Names{used: map[string]bool{}}
	for _, v := range m.Weights {
		n.used[v.Name] = true
	}
	for _, v := range m.States {
		n.used[v.Name] = true
	}
	for _, g := range m.Graphs {
		for _, v := range g.Values() {
			n.used[v.Name] = true
		}
	}
	return n
}

// Fresh returns base if it is unused, or else the first unused name of base_1,
// base_2, …, and marks the name as used.
func (n *Names) Fresh(base string) string {
	name := base
	for i := 1; n.used[name]; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	n.used[name] = true
	return name
}
