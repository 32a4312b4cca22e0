package passes

import (
	"github.com/iflowc/iflowc/ir"
)

// A MatrixGroup lists matrices that need one type: those that one matmul computes after
// MergeProjections, and those of a mixture of experts.
type MatrixGroup struct {
	Weights []*ir.Value // as the model spec declares them
	Stored  []*ir.Value // of the module after merging: those that a step reads
	Head    bool        // of the output head, which is often also the embedding
	Gate    bool        // its products choose experts or weigh what others compute
	Draft   bool        // used only to propose tokens
}

// MatrixGroups returns the groups of a module after MergeProjections, in the order of
// their first use.
func MatrixGroups(m *ir.Module) (list []*MatrixGroup) {
	heads, gates, drafts := headWeights(m), gateWeights(m), draftWeights(m)
	of := map[*ir.Value]*MatrixGroup{}
	join := func(ws []*ir.Value) {
		g := &MatrixGroup{}
		for _, w := range ws {
			if old := of[w]; old != nil {
				g = old
			}
		}
		if g.Stored == nil {
			list = append(list, g)
		}
		for _, w := range ws {
			if of[w] == nil {
				of[w] = g
				g.Stored = append(g.Stored, w)
				g.Head, g.Gate, g.Draft = g.Head || heads[w], g.Gate || gates[w], g.Draft || drafts[w]
			}
		}
	}
	for _, g := range m.Graphs {
		for op := range g.All() {
			if ws := matrices(op); len(ws) > 0 {
				join(ws)
			}
		}
	}
	for _, g := range list {
		seen := map[*ir.Value]bool{}
		for _, w := range g.Stored {
			for _, part := range partsOf(m, w) {
				if !seen[part] {
					seen[part] = true
					g.Weights = append(g.Weights, part)
				}
			}
		}
	}
	return list
}

// partsOf returns the weights that MergeProjections made a weight of, or the weight itself.
func partsOf(m *ir.Module, w *ir.Value) (parts []*ir.Value) {
	for _, a := range w.Transform.Args {
		if a.Op == "weight" {
			if part := m.Weight(a.Name); part != nil {
				parts = append(parts, part)
			}
		}
	}
	if parts == nil {
		parts = []*ir.Value{w}
	}
	return parts
}
