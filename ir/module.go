package ir

import "regexp"

// Weight returns the weight of the given name, or nil.
func (m *Module) Weight(name string) *Value { return find(m.Weights, name) }

// State returns the state of the given name, or nil.
func (m *Module) State(name string) *Value { return find(m.States, name) }

// Graph returns the graph of the given name, or nil.
func (m *Module) Graph(name string) *Graph {
	for _, g := range m.Graphs {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Input returns the input of the given name, or nil.
func (g *Graph) Input(name string) *Value { return find(g.Inputs, name) }

// Dim returns the dim with the given role ("tokens", "out_rows", "sequences"), or nil.
func (g *Graph) Dim(role string) *Dim {
	for _, d := range g.Dims {
		if d.Role == role {
			return d
		}
	}
	return nil
}

func find(vs []*Value, name string) *Value {
	for _, v := range vs {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// unique matches the suffix that makes the name of a value unique in its graph.
var unique = regexp.MustCompile(`_[0-9]+$`)

// OutputName returns the external name of a graph's result: that of %logits_2 is
// "logits".
func (v *Value) OutputName() string { return unique.ReplaceAllString(v.Name, "") }

// Output returns the index of the graph's result with the given external name, or -1.
func (g *Graph) Output(name string) int {
	for i, y := range g.Body.Yield {
		if y.OutputName() == name {
			return i
		}
	}
	return -1
}
