package passes

import (
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// headMatmuls returns the matmuls of a graph's output head. All that flows from the layers
// to one of the results passes through each of them: the output matrix, and a matrix with its
// norm in front of it, but no matrix whose product is added to the residual stream.
func headMatmuls(g *ir.Graph) map[*ir.Op]bool {
	heads := map[*ir.Op]bool{}
	for _, op := range g.Body.Ops {
		for _, y := range g.Body.Yield {
			if op.Def != ops.Matmul || heads[op] {
				continue
			}
			w := pathWalk{without: op, seen: map[*ir.Op]bool{}}
			if around := w.fromLayers(y); w.met {
				heads[op] = !around
			}
		}
	}
	return heads
}

// A pathWalk follows values of a graph's body back to what they are computed from.
type pathWalk struct {
	without *ir.Op // not followed
	met     bool   // without was reached
	seen    map[*ir.Op]bool
}

// fromLayers reports whether a path leads to a value from an op that reads other tokens, or
// from an input of numbers.
func (w *pathWalk) fromLayers(v *ir.Value) (found bool) {
	op := v.Op
	switch {
	case v.Kind == ir.Input:
		return v.Type.Elem == tensor.F32
	case op == nil || w.seen[op]:
		return false
	case op == w.without:
		w.met = true
		return false
	}
	w.seen[op] = true
	found = mixesTokens(op)
	for _, a := range op.Args {
		if a.Value != nil && w.fromLayers(a.Value) {
			found = true
		}
	}
	return found
}

// mixesTokens reports whether an op, or one in its body, reads rows of other tokens.
func mixesTokens(op *ir.Op) bool {
	mixes := func(o *ir.Op) bool { return o.Def.Traits&(ir.Reads|ir.AcrossRows) != 0 }
	if op.Body != nil {
		for o := range op.Body.All() {
			if mixes(o) {
				return true
			}
		}
	}
	return mixes(op)
}

// gateWeights returns the matrices whose products choose experts or weigh what others
// compute: routers, the gates of whole experts, heads and streams, and decays. They are small,
// and their errors change which weights are used at all, or all channels alike.
func gateWeights(m *ir.Module) map[*ir.Value]bool {
	gates := map[*ir.Value]bool{}
	for _, g := range m.Graphs {
		uses := ir.Uses(g)
		for op := range g.All() {
			if op.Def == ops.Matmul && weighs(op.Result(), op.Result().Type.Cols(), uses, map[*ir.Value]bool{}) {
				gates[op.Args[1].Value] = true
			}
		}
	}
	return gates
}

// weighs reports whether a value of cols columns, or what ops on single numbers make of it,
// chooses or weighs others.
func weighs(v *ir.Value, cols int, uses map[*ir.Value][]ir.Use, seen map[*ir.Value]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	for _, u := range uses[v] {
		op := u.Op
		if op == nil {
			continue
		}
		switch {
		case op.Def == ops.Route, op.Def == ops.StreamWeights:
			if op.Args[0].Value == v {
				return true
			}
		case op.Def == ops.LinearRecurrence:
			s := ops.RecurrenceShapeOf(op)
			for _, arg := range []int{s.Decay, s.Beta} {
				if arg > 0 && op.Args[arg].Value == v && cols <= s.Heads {
					return true
				}
			}
		case op.Def == ops.Mul && op.Result().Type.Cols() > cols:
			return true
		case op.Def.Is(ir.Elementwise) && len(op.Results) == 1 && op.Result().Type.Cols() == cols:
			if weighs(op.Result(), cols, uses, seen) {
				return true
			}
		}
	}
	return false
}
