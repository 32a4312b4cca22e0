package ir

import "regexp"

// Weight finds a weight by name, or gives nil.
func (m *Module) Weight(name string) *Value { return find(m.Weights, name) }

// State finds a state by name, or gives nil.
func (m *Module) State(name string) *Value { return find(m.States, name) }

// Graph finds a graph by name, or gives nil.
func (m *Module) Graph(name string) *Graph {
	for _, g := range m.Graphs {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Input finds an input by name, or gives nil.
func (g *Graph) Input(name string) *Value { return find(g.Inputs, name) }

// Dim finds a dim by role ("tokens", "out_rows", "sequences"), or gives nil.
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

// unique is what makes the name of a value unique in its graph.
var unique = regexp.MustCompile(`_[0-9]+$`)

// OutputName returns the name of a graph's result as users know it: that of %logits_2
// is "logits".
func (v *Value) OutputName() string { return unique.ReplaceAllString(v.Name, "") }

// Output returns the place of a result of a name that users know among the graph's, or
// -1.
func (g *Graph) Output(name string) int {
	for i, y := range g.Body.Yield {
		if y.OutputName() == name {
			return i
		}
	}
	return -1
}
