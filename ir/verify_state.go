package ir

import (
	"fmt"
	"slices"
)

// stateOrder checks the uses of states. A graph that writes a state must write each
// of its elements once, and before it reads it. Otherwise a later step would see only
// the rows of the last write, and chunked prefill would change the results.
func (v *verifier) stateOrder() {
	writers := map[*Value]map[*Graph]bool{}
	eachStateUse(v.mod, func(g *Graph, o *Op, a Arg) {
		if o.Def.Is(Writes) {
			if writers[a.Value] == nil {
				writers[a.Value] = map[*Graph]bool{}
			}
			writers[a.Value][g] = true
		}
	})
	eachStateUse(v.mod, func(g *Graph, o *Op, a Arg) {
		if o.Def.Is(Reads) && writers[a.Value] == nil {
			v.errs.addf(o.Pos, "graph %s: %s: reads %s, which nothing writes", g.Name, opName(o), a)
		}
	})
	if len(v.errs) > 0 {
		return // indices and ranges may be invalid
	}
	for _, g := range v.mod.Graphs {
		s := &stateRun{verifier: v, graph: g, left: maxStateOps, written: map[string]bool{}, own: func(st *Value) bool { return writers[st][g] }}
		s.block(g.Body)
	}
}

func eachStateUse(m *Module, f func(g *Graph, o *Op, a Arg)) {
	for _, g := range m.Graphs {
		if g.Body == nil {
			continue
		}
		for o := range g.All() {
			for _, a := range o.Args {
				if o.Def != nil && a.Value != nil && a.Kind == State {
					f(g, o, a)
				}
			}
		}
	}
}

// maxStateOps is the maximum number of ops that a stateRun visits, over all iterations.
const maxStateOps = 1 << 18

// A stateRun visits the ops of a graph in the order of a step, iteration by
// iteration, and records which elements of states are written.
type stateRun struct {
	*verifier
	graph   *Graph
	own     func(st *Value) bool // reports whether the graph writes the state
	regions []int                // indices of the enclosing regions
	left    int
	written map[string]bool // written elements, by state name and indices
}

// block visits the ops of a block. It returns false after an error.
func (s *stateRun) block(b *Block) bool {
	for _, o := range b.Ops {
		if s.left--; s.left < 0 {
			s.errs.addf(o.Pos, "graph %s: a step has more than %d ops", s.graph.Name, maxStateOps)
			return false
		}
		if !s.op(o) || o.Body != nil && usesState(o.Body) && !s.region(o) {
			return false
		}
	}
	return true
}

// op records the writes of an op and checks its reads.
func (s *stateRun) op(o *Op) bool {
	for i, a := range o.Args {
		if a.Kind != State || !s.own(a.Value) {
			continue
		}
		index, err := a.At(s.regions, o.IndexCount(i))
		element := a.Name + intList(index)
		switch {
		case err != nil:
			s.errs.addf(o.Pos, "graph %s: %s: %v", s.graph.Name, opName(o), err)
			return false
		case o.Def.Is(Writes) && s.written[element]:
			s.errs.addf(o.Pos, "graph %s: %s: writes %s twice in a step; use a separate element for each layer that appends", s.graph.Name, opName(o), elementText(a, index))
			return false
		case o.Def.Is(Writes):
			s.written[element] = true
		case o.Def.Is(Reads) && !s.written[element]:
			s.errs.addf(o.Pos, "graph %s: %s: reads %s before it is written", s.graph.Name, opName(o), elementText(a, index))
			return false
		}
	}
	return true
}

// elementText returns an argument with the element that it selects in one iteration.
func elementText(a Arg, index []int) string {
	if text := a.String(); len(index) > 0 && text != a.Value.String()+intList(index) {
		return fmt.Sprintf("%s (element %s)", text, intList(index))
	}
	return a.String()
}

// region visits the iterations of an op with a body. It visits one rank, because the
// ranks are equal.
func (s *stateRun) region(o *Op) bool {
	lo, hi := 0, 1
	switch o.Def {
	case Fuse:
		return s.block(o.Body)
	case Repeat:
		lo, hi = o.Int("lo"), o.Int("hi")
	}
	depth := len(s.regions)
	defer func() { s.regions = s.regions[:depth] }()
	for n := lo; n < hi; n++ {
		s.regions = append(s.regions[:depth], n)
		if !s.block(o.Body) {
			return false
		}
	}
	return true
}

// usesState reports whether an op of a block or of its nested blocks uses a state.
func usesState(b *Block) bool {
	for o := range b.All() {
		if slices.ContainsFunc(o.Args, func(a Arg) bool { return a.Kind == State }) {
			return true
		}
	}
	return false
}
