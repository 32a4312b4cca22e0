package ir

import "strconv"

// Names gives out names that nothing in a module bears yet.
type Names struct{ used map[string]bool }

// NewNames knows every name of the module: weights, states and values of all
// graphs.
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

// Fresh returns base when it is free, else base_1, base_2, …; the name is then
// taken.
func (n *Names) Fresh(base string) string {
	name := base
	for i := 1; n.used[name]; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	n.used[name] = true
	return name
}
