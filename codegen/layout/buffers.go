package layout

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// A Buffer is memory that values with disjoint lifetimes share.
type Buffer struct {
	Number int
	Role   string // of its rows: "tokens", "out_rows" or "sequences"
	Cols   int    // floats per row of the widest value, a multiple of 16
	slot   int    // number of the !slot annotations; -1: for one value only
	used   bool
}

// A Place is the location of a value's rows, Pitch floats apart: a buffer, or an output
// array of the step. A view starts at a column of another value's rows and has their
// pitch; other values have only padding between their rows.
type Place struct {
	Symbol string  // in C
	Buffer *Buffer // nil: an output
	Output int     // index of the output
	Column int     // first column of a view
	Cols   int     // floats per row without padding
	Pitch  int
}

// Place returns the location of a value's rows. A value that does not outlive its
// region has none.
func (l *Layout) Place(v *ir.Value) (Place, bool) {
	p, ok := l.places[v]
	return p, ok
}

// reserve selects a buffer for each value of a block that may outlive its region: the
// one of its !slot annotation, or a separate one. A buffer is numbered when the first
// region keeps a value in it.
func (l *Layout) reserve(b *ir.Block) {
	for _, op := range b.Ops {
		slots := slotAnnotations(op)
		for i, r := range op.Results {
			slot := -1
			if len(slots) == len(op.Results) {
				slot = slots[i]
			}
			l.buffers[r] = l.bufferOf(slot, r)
		}
		switch op.Def.Name {
		case "repeat":
			for i, p := range op.Body.Params {
				l.buffers[p] = l.buffers[op.Results[i]]
			}
			l.reserve(op.Body)
		case "fuse": // the values that it yields share the places of its results
			for i, y := range op.Body.Yield {
				l.buffers[y] = l.buffers[op.Results[i]]
			}
		}
	}
}

// slotAnnotations returns the numbers of an op's !slot annotations; -1 if not a number.
func slotAnnotations(op *ir.Op) (slots []int) {
	for _, n := range op.Annotations {
		if n.Name != "slot" {
			continue
		}
		for _, a := range n.Args {
			id, err := strconv.Atoi(a.Val)
			if err != nil || id < 0 {
				id = -1
			}
			slots = append(slots, id)
		}
	}
	return slots
}

// bufferOf returns the buffer of a slot for rows like those of v, and creates it if
// necessary.
func (l *Layout) bufferOf(slot int, v *ir.Value) *Buffer {
	if slot >= 0 {
		for _, b := range l.buffers {
			if b.slot == slot && b.Role == v.Role() {
				return b
			}
		}
	}
	return &Buffer{Role: v.Role(), slot: slot}
}

// isView reports whether an op is a split whose results stay in the buffer of its
// argument, as the pass plan-buffers decided.
func (l *Layout) isView(op *ir.Op) bool {
	if op.Def.Name != "split" {
		return false
	}
	b := l.buffers[op.Results[0]]
	return b != nil && b == l.buffers[op.Args[0].Value]
}

// rowsWith returns the value in whose rows v lies, and the first column of v there.
// Unless v is a view, it is v itself.
func (l *Layout) rowsWith(v *ir.Value) (rows *ir.Value, column int) {
	for v.Kind == ir.Result && l.isView(v.Op) {
		column += ops.SplitColumn(v.Op, slices.Index(v.Op.Results, v), 0)
		v = v.Op.Args[0].Value
	}
	return v, column
}

// keep assigns a place to a value that outlives its region.
func (l *Layout) keep(v *ir.Value) {
	if _, ok := l.places[v]; ok {
		return
	}
	if rows, column := l.rowsWith(v); rows != v {
		l.keep(rows)
		p := l.places[rows]
		p.Symbol, p.Column, p.Cols = l.symbols.of("ROW_", v.Name), column, v.Type.Cols()
		l.places[v] = p
		return
	}
	b := l.buffers[v]
	if !b.used {
		b.used, b.Number = true, len(l.Buffers)
		l.Buffers = append(l.Buffers, b)
	}
	p := l.place("ROW_", v)
	p.Buffer = b
	b.Cols = max(b.Cols, p.Pitch)
	l.places[v] = p
}

func (l *Layout) place(prefix string, v *ir.Value) Place {
	return Place{Symbol: l.symbols.of(prefix, v.Name), Cols: v.Type.Cols(), Pitch: Round16(v.Type.Cols())}
}

// placeOutputs places the graph's results directly in the caller's arrays. Results of a
// repeat or a recv, and inputs, are copied there at the end.
func (l *Layout) placeOutputs(gr *Graph) {
	for i, y := range gr.Body.Yield {
		if y.Kind != ir.Result || y.Op.Def.Name == "repeat" || y.Op.Def.Name == "recv" {
			continue
		}
		if _, ok := l.places[y]; ok {
			continue // yielded twice: the second array gets a copy
		}
		p := l.place("OUT_", y)
		p.Output = gr.At + i
		l.places[y] = p
		if y.Op.Def.Name == "fuse" {
			l.places[y.Op.Body.Yield[slices.Index(y.Op.Results, y)]] = p
		}
	}
}

// earlier returns the outputs of another graph's earlier step from which gr reads. If
// no other graph of the module yields anything, they are outputs of another rank, and
// all are inputs of gr.
func earlier(m *ir.Module, gr *ir.Graph) []*ir.Value {
	var foreign []*ir.Value
	alone := len(m.Graphs) > 1
	for _, in := range gr.Inputs {
		if isIDs(in) {
			continue
		}
		foreign = append(foreign, in)
		for _, other := range m.Graphs {
			if other != gr && other.Output(in.Name) >= 0 {
				return other.Body.Yield
			}
			alone = alone && (other == gr || len(other.Body.Yield) == 0)
		}
	}
	if !alone {
		return nil
	}
	return foreign
}

// placeInput places a float input where the earlier step wrote it.
func (l *Layout) placeInput(gr *Graph, in *ir.Value) error {
	i := slices.IndexFunc(gr.earlier, func(y *ir.Value) bool { return y.OutputName() == in.Name })
	if i < 0 {
		return fmt.Errorf("no other graph yields input %s", in)
	}
	if y := gr.earlier[i]; y.Type.Elem != in.Type.Elem || y.Type.Cols() != in.Type.Cols() {
		return fmt.Errorf("input %s is %s but another graph yields %s", in, in.Type, y.Type)
	}
	p := l.place("IN_", in)
	p.Output = i
	l.places[in] = p
	return nil
}

// placed returns the place of an op's argument.
func (s *scheduler) placed(op *ir.Op, v *ir.Value) (Place, error) {
	p, ok := s.l.places[v]
	if !ok {
		return p, fmt.Errorf("%s: no earlier region computes %s", Position(op), v)
	}
	return p, nil
}
