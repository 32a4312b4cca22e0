package ir

import "slices"

// DCE removes dead code and reports whether anything changed. It removes ops
// without used results (but keeps ops that write states, and their regions),
// carried values that only feed themselves, and unused yields of fuse and par
// regions. Then it removes weights and states that no op and no transform uses.
func DCE(m *Module) bool {
	changed := false
	for _, g := range m.Graphs {
		for dropDead(g) {
			changed = true
		}
	}
	return dropUnreferenced(m) || changed
}

func dropDead(g *Graph) bool {
	live := liveValues(g)
	changed := false
	for _, b := range g.Blocks() {
		n := len(b.Ops)
		b.Ops = slices.DeleteFunc(b.Ops, func(o *Op) bool {
			return !keeps(o) && !slices.ContainsFunc(o.Results, func(v *Value) bool { return live[v] })
		})
		changed = changed || len(b.Ops) != n
		for _, o := range b.Ops {
			if o.Body != nil && trimResults(o, live) {
				changed = true
			}
		}
	}
	return changed
}

// keeps reports whether the op has an effect besides its results.
func keeps(o *Op) bool {
	if o.Body == nil {
		return o.Def.Is(Writes)
	}
	for inner := range o.Body.All() {
		if inner.Def.Is(Writes) {
			return true
		}
	}
	return false
}

// liveValues returns every value that is needed, found backwards from the outputs
// and the writes.
func liveValues(g *Graph) map[*Value]bool {
	live := map[*Value]bool{}
	carries := map[*Value]*Op{} // carried value → its repeat
	var need func(*Value)
	needOp := func(o *Op) {
		if o.Def == Repeat {
			return // its initial values are marked individually
		}
		for _, a := range o.Args {
			need(a.Value)
		}
	}
	need = func(v *Value) {
		if live[v] {
			return
		}
		live[v] = true
		if r := carries[v]; r != nil {
			i := slices.Index(r.Body.Params, v)
			need(r.Args[i].Value)
			need(r.Body.Yield[i])
		}
		if v.Kind != Result || v.Op == nil {
			return
		}
		needOp(v.Op)
		if b := v.Op.Body; b != nil {
			i := slices.Index(v.Op.Results, v)
			need(b.Yield[i])
			if v.Op.Def == Repeat {
				need(b.Params[i])
			}
		}
	}
	for o := range g.All() {
		if o.Def == Repeat {
			for _, p := range o.Body.Params {
				carries[p] = o
			}
		}
	}
	for _, y := range g.Body.Yield {
		need(y)
	}
	for o := range g.All() {
		if o.Body == nil && o.Def.Is(Writes) {
			needOp(o)
		}
	}
	return live
}

// trimResults drops the unused results of a region.
func trimResults(o *Op, live map[*Value]bool) bool {
	changed := false
	for i := len(o.Results) - 1; i >= 0; i-- {
		if live[o.Results[i]] || o.Def == Repeat && live[o.Body.Params[i]] {
			continue
		}
		o.Results = slices.Delete(o.Results, i, i+1)
		o.Body.Yield = slices.Delete(o.Body.Yield, i, i+1)
		if o.Def == Repeat {
			o.Body.Params = slices.Delete(o.Body.Params, i, i+1)
			o.Args = slices.Delete(o.Args, i, i+1)
		}
		changed = true
	}
	return changed
}

func dropUnreferenced(m *Module) bool {
	used := map[*Value]bool{}
	var byName func(name string)
	mark := func(v *Value) {
		if v != nil && !used[v] {
			used[v] = true
			for _, ref := range TransformRefs(v.Transform) {
				byName(ref)
			}
		}
	}
	byName = func(name string) { mark(m.Weight(name)) }
	for _, g := range m.Graphs {
		for o := range g.All() {
			for _, a := range o.Args {
				mark(a.Value)
			}
		}
	}
	unused := func(v *Value) bool { return !used[v] }
	before := len(m.Weights) + len(m.States)
	m.Weights = slices.DeleteFunc(m.Weights, unused)
	m.States = slices.DeleteFunc(m.States, unused)
	return len(m.Weights)+len(m.States) != before
}
