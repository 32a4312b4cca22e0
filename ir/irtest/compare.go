package irtest

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Compare runs two modules on the same random stored tensors and the same steps and
// compares the outputs of graphs with the same name. The steps have 1, 2 and 5 tokens, a
// prompt in chunks, and several sequences in a batch. Two numbers agree if |a − b| ≤
// tol·(1 + |a|). The error contains the graph, the step and the first number that differs.
// Graphs that write source states run before the others. For graphs with only causal or
// cross-attention, Compare also checks that the second module returns the same results for
// a prompt in chunks as for the whole prompt.
func Compare(a, b *ir.Module, seed uint64, tol float64) error {
	src, err := interp.Random(seed, a, b)
	if err != nil {
		return err
	}
	if len(a.Graphs) != len(b.Graphs) {
		return fmt.Errorf("%d graphs and %d", len(a.Graphs), len(b.Graphs))
	}
	wa, wb := interp.NewWeights(a, src), interp.NewWeights(b, src)
	for _, sc := range scenarios(a, seed) {
		sa, sb := interp.NewStates(), interp.NewStates()
		for i, step := range sc.steps {
			for _, g := range sourcesFirst(a) {
				oa, err := interp.Run(a, g.Name, withExtra(step, g, seed), wa, sa)
				if err != nil {
					return fmt.Errorf("%s, step %d, first module: %w", sc.name, i, err)
				}
				ob, err := interp.Run(b, g.Name, withExtra(step, g, seed), wb, sb)
				if err != nil {
					return fmt.Errorf("%s, step %d, second module: %w", sc.name, i, err)
				}
				if err := near(oa, ob, tol); err != nil {
					return fmt.Errorf("%s, step %d, graph %s: %w", sc.name, i, g.Name, err)
				}
			}
		}
	}
	return chunked(b, wb, seed)
}

// sourcesFirst returns the graphs, with those that run on sources first.
func sourcesFirst(m *ir.Module) []*ir.Graph {
	var on, off []*ir.Graph
	for _, g := range m.Graphs {
		if g.WritesSource() {
			on = append(on, g)
		} else {
			off = append(off, g)
		}
	}
	return append(on, off...)
}

// near compares outputs element by element.
func near(a, b []*tensor.Tensor, tol float64) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d outputs and %d", len(a), len(b))
	}
	for i := range a {
		if len(a[i].F) != len(b[i].F) {
			return fmt.Errorf("output %d: shapes %v and %v", i, a[i].Shape, b[i].Shape)
		}
		for j, x := range a[i].F {
			if y := b[i].F[j]; !(math.Abs(x-y) <= tol*(1+math.Abs(x))) {
				return fmt.Errorf("output %d: number %d of %v is %g and %g (tolerance %g)", i, j, a[i].Shape, x, y, tol)
			}
		}
	}
	return nil
}

// A scenario is a list of steps that share states.
type scenario struct {
	name  string
	steps []interp.Step
}

func scenarios(m *ir.Module, seed uint64) []scenario {
	ids := tokens(m, seed, 8)
	return []scenario{
		{"one token", []interp.Step{{IDs: ids[:1]}}},
		{"two tokens", []interp.Step{{IDs: ids[:2]}}},
		{"five tokens", []interp.Step{{IDs: ids[:5], OutRows: []int{4, 1}}}},
		{"chunks of 3, 1 and 1", []interp.Step{{IDs: ids[:3], OutRows: []int{2}}, {IDs: ids[3:4]}, {IDs: ids[4:5]}}},
		{"three sequences", []interp.Step{
			{IDs: ids[:6], Seq: []int{0, 0, 1, 2, 1, 0}, OutRows: []int{3, 4, 5}},
			{IDs: ids[5:8], Seq: []int{2, 0, 1}},
		}},
	}
}

// tokens returns random token ids that are valid in every embedding table.
func tokens(m *ir.Module, seed uint64, n int) []int {
	limit := 1 << 10
	for _, g := range m.Graphs {
		for _, o := range g.FindOps("embed") {
			if o.Args[0].Name == "ids" {
				limit = min(limit, o.Args[1].Type.Shape[0].N)
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []int
	for range n {
		out = append(out, rng.IntN(limit))
	}
	return out
}

// withExtra adds random values for inputs that are neither part of the step nor set.
func withExtra(s interp.Step, g *ir.Graph, seed uint64) *interp.Step {
	known := map[string]bool{"ids": true, "pos": true, "out_rows": true, "types": true}
	if s.Extra = maps.Clone(s.Extra); s.Extra == nil {
		s.Extra = map[string]*tensor.Tensor{}
	}
	for i, in := range g.Inputs {
		if known[in.Name] || s.Extra[in.Name] != nil {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, uint64(i)+2))
		var shape []int
		for _, size := range in.Type.Shape {
			switch {
			case size.Dim == nil:
				shape = append(shape, size.N)
			case size.Dim.Role == "out_rows" && s.OutRows != nil:
				shape = append(shape, len(s.OutRows))
			default:
				shape = append(shape, len(s.IDs))
			}
		}
		t := tensor.New(in.Type.Elem, shape...)
		for j := range t.F {
			t.F[j] = rng.NormFloat64()
		}
		s.Extra[in.Name] = t
	}
	return &s
}

// causal reports whether no token of the graph sees a later token of its own sequence.
func causal(g *ir.Graph) bool {
	for _, o := range g.FindOps("attention") {
		if !o.Bool("causal") && !o.Bool("cross") {
			return false
		}
	}
	return !g.WritesSource()
}

// chunked compares a prompt in one step with the same prompt in chunks.
func chunked(m *ir.Module, w interp.Weights, seed uint64) error {
	ids := tokens(m, seed, 5)
	for _, g := range m.Graphs {
		if !causal(g) || g.Dim("out_rows") == nil || len(withExtra(interp.Step{IDs: ids}, g, seed).Extra) > 0 {
			continue
		}
		var last [2][]*tensor.Tensor
		for i, steps := range [][]*interp.Step{
			{{IDs: ids, OutRows: []int{4}}},
			{{IDs: ids[:3]}, {IDs: ids[3:], OutRows: []int{1}}},
		} {
			st := interp.NewStates()
			if err := runSources(m, &interp.Step{IDs: ids[1:4]}, w, st); err != nil {
				return err
			}
			for _, step := range steps {
				var err error
				if last[i], err = interp.Run(m, g.Name, step, w, st); err != nil {
					return err
				}
			}
		}
		if err := near(last[0], last[1], 1e-9); err != nil {
			return fmt.Errorf("graph %s: a prompt whole and in chunks: %w", g.Name, err)
		}
	}
	return nil
}

// runSources runs the graphs that write source states.
func runSources(m *ir.Module, step *interp.Step, w interp.Weights, st *interp.States) error {
	for _, g := range m.Graphs {
		if !g.WritesSource() {
			continue
		}
		if _, err := interp.Run(m, g.Name, step, w, st); err != nil {
			return err
		}
	}
	return nil
}
