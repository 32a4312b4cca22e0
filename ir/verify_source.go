package ir

// sources checks that source tokens and tokens of the sequence itself are not mixed.
// A graph that writes source states runs on source tokens only and reads only states
// that it writes. Other graphs read source states only by cross-attention, and have no op
// that reads rows beside a token's own.
func (v *verifier) sources() {
	type write struct {
		graph *Graph
		state *Value
	}
	wrote := map[write]bool{}
	first := map[*Graph]Arg{} // the first state that each graph writes
	eachStateUse(v.mod, func(g *Graph, o *Op, a Arg) {
		if !o.Def.Is(Writes) || a.State == nil {
			return
		}
		wrote[write{g, a.Value}] = true
		if f, ok := first[g]; !ok {
			first[g] = a
		} else if f.State.Source != a.State.Source {
			v.errs.addf(o.Pos, "graph %s: %s: writes %s, but the graph also writes %s; only one of them is a source state", g.Name, opName(o), a, f)
		}
	})
	for _, g := range v.mod.Graphs {
		if a, ok := first[g]; g.Body == nil || ok && a.State.Source {
			continue
		}
		for o := range g.All() {
			if o.Def != nil && o.Def.Is(AcrossRows) {
				v.errs.addf(o.Pos, "graph %s: %s: reads other rows of a sequence, which a step may have only in part; the graph must write a source state", g.Name, opName(o))
			}
		}
	}
	eachStateUse(v.mod, func(g *Graph, o *Op, a Arg) {
		if !o.Def.Is(Reads) || a.State == nil || !a.State.Source {
			return
		}
		d := o.Def.Attr("cross")
		cross := d != nil && d.Kind == BoolAttr && o.checkAttrs() == nil && o.Bool("cross")
		switch own := wrote[write{g, a.Value}]; {
		case cross && own:
			v.errs.addf(o.Pos, "graph %s: %s: cross-attends to %s, which the same graph writes", g.Name, opName(o), a)
		case !cross && !own:
			v.errs.addf(o.Pos, "graph %s: %s: reads source state %s, which the graph does not write, without cross", g.Name, opName(o), a)
		}
	})
}

// WritesSource reports whether the graph runs on source tokens: it writes a source
// state.
func (g *Graph) WritesSource() bool {
	for o := range g.All() {
		if !o.Def.Is(Writes) {
			continue
		}
		for _, a := range o.Args {
			if a.Kind == State && a.State.Source {
				return true
			}
		}
	}
	return false
}
