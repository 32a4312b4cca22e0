//go:build unix

package main

import (
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// graphs adds the ops of the module's graphs with the regions that compute them,
// and the lifetimes of the values in each buffer.
func (d *viewData) graphs(mod *ir.Module, regions []manifest.Region) {
	w := &viewWalk{regions: regions, slots: map[int]*viewSlot{}, last: map[*ir.Value]int{}}
	for _, g := range mod.Graphs {
		w.graph = g.Name
		v := viewGraph{Name: g.Name, Ops: w.block(g.Body)}
		for _, y := range g.Body.Yield {
			w.last[y] = max(w.last[y], w.at-1)
		}
		d.Graphs = append(d.Graphs, v)
	}
	for i := range len(w.slots) {
		if s := w.slots[i]; s != nil {
			w.close(s)
			d.Slots = append(d.Slots, *s)
		}
	}
}

// A viewWalk visits the ops in the order of the code generator.
type viewWalk struct {
	graph   string
	regions []manifest.Region
	at      int // the next region
	slots   map[int]*viewSlot
	held    []viewHeld
	last    map[*ir.Value]int // the region of the last use
}

// A viewHeld is a value in a buffer.
type viewHeld struct {
	v          *ir.Value
	slot, from int
}

// block converts the ops of a block. Adjacent row ops share a region; its
// description lists them.
func (w *viewWalk) block(b *ir.Block) []viewOp {
	var out []viewOp
	left := 0 // ops that the current region still computes
	for _, op := range b.Ops {
		v := boxOf(op)
		switch {
		case op.Def.Name == "repeat":
			w.skip("carry_")
			w.uses(op)
			v.Rounds = op.Int("hi") - op.Int("lo")
			for _, p := range op.Body.Params {
				v.Params = append(v.Params, p.String())
			}
			first := w.at
			v.Body = w.block(op.Body)
			for i := range w.held { // values read from outside stay live for all iterations
				if h := &w.held[i]; h.from < first && w.last[h.v] >= first {
					w.last[h.v] = w.at - 1
				}
			}
			for _, y := range op.Body.Yield {
				w.last[y] = max(w.last[y], w.at-1)
			}
			w.skip("carry_")
		case op.Def.Name == "quantize_act":
		case left > 0:
			left--
			v.Region = w.at - 1
			w.uses(op)
		default:
			if list, rows := w.rowOps(); rows {
				left = list - 1
			}
			v.Region = w.take()
			w.uses(op)
		}
		if op.Def.Name == "fuse" {
			for _, inner := range op.Body.Ops {
				v.Body = append(v.Body, boxOf(inner))
			}
		}
		w.hold(op)
		out = append(out, v)
	}
	w.skip("output_")
	return out
}

// boxOf converts an op without its body.
func boxOf(op *ir.Op) viewOp {
	v := viewOp{Op: op.Def.Name, Line: op.Pos.Line, Region: -1, Results: []string{}, Args: []string{}}
	for _, r := range op.Results {
		v.Results = append(v.Results, r.String())
		v.Type = r.Type.String()
	}
	for _, a := range op.Args {
		v.Args = append(v.Args, a.Value.String())
	}
	if op.Body != nil && op.Def.Name == "fuse" {
		v.Args = append(v.Args, captured(op.Body)...)
	}
	return v
}

// captured returns the values that a region reads from outside.
func captured(b *ir.Block) []string {
	inside, seen := map[*ir.Value]bool{}, map[*ir.Value]bool{}
	var out []string
	for _, op := range b.Ops {
		for _, a := range op.Args {
			if !inside[a.Value] && !seen[a.Value] {
				seen[a.Value] = true
				out = append(out, a.Value.String())
			}
		}
		for _, r := range op.Results {
			inside[r] = true
		}
	}
	return out
}

// rowOps returns the number of ops that the next region lists, if it computes row
// by row.
func (w *viewWalk) rowOps() (int, bool) {
	if w.at >= len(w.regions) {
		return 0, false
	}
	list, rows := strings.CutPrefix(w.regions[w.at].Doc, "Row by row: ")
	return strings.Count(list, ",") + 1, rows
}

// take returns the next region of the graph, or -1.
func (w *viewWalk) take() int {
	if w.at >= len(w.regions) || w.regions[w.at].Graph != w.graph {
		return -1
	}
	w.at++
	return w.at - 1
}

// skip skips regions that only copy.
func (w *viewWalk) skip(prefix string) {
	for w.at < len(w.regions) && w.regions[w.at].Graph == w.graph && strings.HasPrefix(w.regions[w.at].Name, prefix) {
		w.at++
	}
}

// uses records that the region of op reads the arguments of op.
func (w *viewWalk) uses(op *ir.Op) {
	at := max(w.at-1, 0)
	for _, a := range op.Args {
		w.last[a.Value] = max(w.last[a.Value], at)
	}
	if op.Body == nil || op.Def.Name == "repeat" {
		return
	}
	for _, inner := range op.Body.Ops {
		for _, a := range inner.Args {
			w.last[a.Value] = max(w.last[a.Value], at)
		}
	}
}

// hold records the buffers of an op's results.
func (w *viewWalk) hold(op *ir.Op) {
	k := 0
	for _, n := range op.Annotations {
		if n.Name != "slot" {
			continue
		}
		for _, a := range n.Args {
			slot, err := strconv.Atoi(a.Val)
			if err != nil || k >= len(op.Results) {
				continue
			}
			v := op.Results[k]
			k++
			if w.slots[slot] == nil {
				w.slots[slot] = &viewSlot{Slot: slot, Cols: v.Type.Cols(), Rows: v.Role()}
			}
			w.held = append(w.held, viewHeld{v, slot, max(w.at-1, 0)})
		}
	}
}

// close adds the lifetimes of a buffer's values.
func (w *viewWalk) close(s *viewSlot) {
	for _, h := range w.held {
		if h.slot == s.Slot {
			s.Lives = append(s.Lives, viewLife{h.v.String(), h.from, max(w.last[h.v], h.from)})
		}
	}
}
