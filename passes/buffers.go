package passes

import (
	"slices"
	"strconv"

	"github.com/iflowc/iflowc/ir"
)

// PlanBuffers assigns buffers to the values that outlive their region.
var PlanBuffers = &Pass{
	Name:  "plan-buffers",
	Brief: "lets values share buffers",
	Doc:   "Annotates each op whose results outlive it with a buffer. Values with disjoint lifetimes share one. A residual sum overwrites the residual, and a carried value keeps its buffer through all iterations. The parts of a split stay in the buffer of its argument, uncopied, if they are whole vectors of 16 columns.",
	Run:   planBuffers,
}

func planBuffers(_ *Env, m *ir.Module) error {
	ir.DCE(m) // dead values need no buffer
	for _, g := range m.Graphs {
		p := &bufferPlan{slot: map[*ir.Value]int{}, life: lifetimesOf(g), uses: ir.Uses(g)}
		p.block(g.Body, nil)
	}
	return nil
}

// A bufferPlan assigns slots to values in order of execution.
type bufferPlan struct {
	slot  map[*ir.Value]int
	slots []slot
	life  *lifetimes
	uses  map[*ir.Value][]ir.Use
}

// A slot is a buffer that values share, one after another.
type slot struct {
	rows  rows
	holds []*ir.Value
	until int // number of the op up to which it is occupied
}

// rows is what the values of one slot have in common: the number of rows and
// their pitch. Neighboring ops run together row by row, so a row may be
// overwritten only where the same row was read.
type rows struct {
	role  string
	pitch int // in vectors of 16 columns
}

func rowsOf(v *ir.Value) rows { return rows{v.Role(), (v.Type.Cols() + 15) / 16} }

// block plans one block. target is the preferred slot of each value that it
// yields.
func (p *bufferPlan) block(b *ir.Block, target map[*ir.Value]int) {
	for _, op := range b.Ops {
		switch {
		case op.Def.Name == "repeat":
			p.repeat(op)
		case p.views(op):
			for _, r := range op.Results {
				p.take(r, p.slot[op.Args[0].Value], p.life.last[r])
			}
		case op.Def.Name != "quantize_act":
			for _, r := range op.Results {
				p.place(op, r, target)
			}
		}
		p.note(op)
	}
}

// views reports whether the results of an op are views: columns of its argument, which
// stay where they are. It must be a split into whole vectors of 16 columns, because
// kernels read whole vectors. What a block yields, a repeat carries or ranks exchange
// has rows of its own, without other columns between them.
func (p *bufferPlan) views(op *ir.Op) bool {
	if op.Def.Name != "split" || op.Int("panel") > 0 {
		return false
	}
	if _, ok := p.slot[op.Args[0].Value]; !ok {
		return false
	}
	moved := func(u ir.Use) bool {
		return u.Op == nil || u.Op.Def.Name == "repeat" || u.Op.Def.Is(ir.Collective)
	}
	return !slices.ContainsFunc(op.Results, func(r *ir.Value) bool {
		return r.Type.Cols()%16 != 0 || slices.ContainsFunc(p.uses[r], moved)
	})
}

// note writes the slots of an op's results.
func (p *bufferPlan) note(op *ir.Op) {
	var words []string
	for _, r := range op.Results {
		s, ok := p.slot[r]
		if !ok {
			return
		}
		words = append(words, strconv.Itoa(s))
	}
	if len(words) > 0 {
		op.Annotations.Set(ir.Words("slot", words...))
	}
}

// place assigns a slot to a result: the slot of the carried value that it
// becomes, the slot of an argument that dies in this op and is read only where
// it is overwritten, or a free one.
func (p *bufferPlan) place(op *ir.Op, r *ir.Value, target map[*ir.Value]int) {
	at := p.life.at[op]
	if s, ok := target[r]; ok && (len(p.live(s, at)) == 0 || p.inPlace(op, r, s)) {
		p.take(r, s, p.life.last[r])
		return
	}
	for s := range p.slots {
		if p.inPlace(op, r, s) {
			p.take(r, s, p.life.last[r])
			return
		}
	}
	p.take(r, p.free(rowsOf(r), at), p.life.last[r])
}

// live lists the values of a slot that op number `at` or a later one reads.
func (p *bufferPlan) live(s, at int) (list []*ir.Value) {
	for _, v := range p.slots[s].holds {
		if p.life.last[v] >= at {
			list = append(list, v)
		}
	}
	return list
}

func (p *bufferPlan) take(v *ir.Value, s, until int) {
	p.slot[v] = s
	x := &p.slots[s]
	x.holds, x.until = append(x.holds, v), max(x.until, until)
}

// free returns a slot for such rows that is unused from op number `at` on, or
// adds one.
func (p *bufferPlan) free(want rows, at int) int {
	for s, x := range p.slots {
		if x.until < at && x.rows == want {
			return s
		}
	}
	p.slots = append(p.slots, slot{rows: want, until: -1})
	return len(p.slots) - 1
}

// inPlace reports whether the result may overwrite the one value in slot s: it
// has the same type, dies here, and on the way to the result the op reads it
// only column by column after its root (or is elementwise itself).
func (p *bufferPlan) inPlace(op *ir.Op, r *ir.Value, s int) bool {
	at := p.life.at[op]
	live := p.live(s, at)
	if len(live) != 1 {
		return false
	}
	held := live[0]
	if !held.Type.Equal(r.Type) || p.life.last[held] != at {
		return false
	}
	if op.Def.Name != "fuse" {
		return op.Def.Is(ir.Elementwise) && reads(op, held)
	}
	behind := false
	from := map[*ir.Value]bool{} // computed from the argument of the last op that reads it: not earlier
	for _, o := range op.Body.Ops {
		switch {
		case reads(o, held) && (!behind || !o.Def.Is(ir.Elementwise)):
			return false
		case reads(o, held):
			from = map[*ir.Value]bool{o.Result(): true}
		case slices.ContainsFunc(o.Args, func(a ir.Arg) bool { return from[a.Value] }):
			for _, v := range o.Results {
				from[v] = true
			}
		}
		behind = behind || o.Def.Is(ir.Root)
	}
	return from[op.Body.Yield[slices.Index(op.Results, r)]]
}

func reads(op *ir.Op, v *ir.Value) bool {
	return slices.ContainsFunc(op.Args, func(a ir.Arg) bool { return a.Value == v })
}

// repeat plans a loop. A carried value takes over the slot of its initial value
// if that dies here. Its last value uses the same slot if possible, and so do
// the results.
func (p *bufferPlan) repeat(op *ir.Op) {
	at, end := p.life.at[op], p.life.end[op.Body]
	target, carried := map[*ir.Value]int{}, map[int]bool{}
	for j, c := range op.Body.Params {
		init := op.Args[j].Value
		s, ok := p.slot[init]
		if !ok || p.life.last[init] != at || p.slots[s].rows != rowsOf(c) || carried[s] {
			s = p.free(rowsOf(c), at)
		}
		p.take(c, s, end) // occupied until the last iteration
		carried[s] = true
		target[op.Body.Yield[j]] = s
	}
	p.block(op.Body, target)
	for j, r := range op.Results {
		p.take(r, p.slot[op.Body.Params[j]], p.life.last[r])
	}
}
