package layout

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// CellRows is the number of rows of a sequence in a cell of its fixed-size states.
const CellRows = 16

// maxTaps is the maximum number of taps of a short convolution (ifl_cells.h).
const maxTaps = CellRows

// A Fixed is the placement of a fixed-size state. Cells are stored by element: the
// cells of element i start at (At + (i−Lo)·Cell) · cells.
type Fixed struct {
	Name   string // in the module
	Symbol string // in C
	Op     *ir.Op // an op on it
	Start  int64  // floats in a cell for the state before its rows
	Row    int64  // floats for each row
	Count  int    // elements: layers
	Lo     int    // index of the first element
	Cell   int64  // bytes per cell of one element
	At     int64
	array  bool
}

// Index returns the index of the element that an argument reads in a region, like
// [Weight.Index].
func (f *Fixed) Index(a ir.Arg, in *Loop) (index ir.Index, array bool, err error) {
	return elementIndex(a, in, f.array)
}

// A Recurrent is an op on a fixed-size state.
type Recurrent struct {
	Op    *ir.Op
	State *Fixed
	Args  []Place // of the arguments that are values
	Out   Place
	Silu  bool                // the result is that of silu on the op's
	Shape ops.RecurrenceShape // of a linear_recurrence
}

// placeFixed assigns an offset to the cells of a fixed-size state.
func (l *Layout) placeFixed(v *ir.Value) error {
	f := &Fixed{Name: v.Name, Symbol: l.symbols.of("CELL_", v.Name), Count: 1, At: l.CellBytes()}
	for _, g := range l.Module.Graphs {
		for op := range g.All() {
			if op.Def.Step == nil || op.Args[0].Value != v {
				continue
			}
			start, row, err := cellSizes(op)
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", Position(op), err)
			case f.Op != nil && (f.Op.Def != op.Def || f.Start != start || f.Row != row):
				return fmt.Errorf("%s: %s has another op of another kind, %s", Position(op), v, Position(f.Op))
			}
			f.Op, f.Start, f.Row = op, start, row
		}
	}
	if f.Op == nil {
		return fmt.Errorf("%s: no op uses state %s", v.Pos, v)
	}
	f.Cell = 4 * (f.Start + CellRows*f.Row)
	if len(v.Count) == 1 {
		f.array, f.Count, f.Lo = true, v.Count[0].Len(), v.Count[0].Lo
	}
	l.Fixed = append(l.Fixed, f)
	l.fixed[v] = f
	return nil
}

// CellBytes returns the total size of one cell of every element of every fixed-size
// state.
func (l *Layout) CellBytes() int64 {
	n := int64(0)
	for _, f := range l.Fixed {
		n += f.Cell * int64(f.Count)
	}
	return n
}

// FixedState returns the placement of an argument's fixed-size state.
func (l *Layout) FixedState(v *ir.Value) *Fixed { return l.fixed[v] }

// cellSizes returns the floats of a cell that an op uses; the headers of
// templates/include say what they are (ifl_cells.h, ifl_recurrence.h, ifl_scan.h).
func cellSizes(op *ir.Op) (start, row int64, err error) {
	wide := func(n int) int64 { return int64(Round16(n)) }
	shape := op.Args[0].State.Fields[0].Shape
	switch op.Def.Name {
	case "short_conv":
		taps := shape[0] + 1
		if taps > maxTaps {
			return 0, 0, fmt.Errorf("%d taps; targets support at most %d", taps, maxTaps)
		}
		return int64(taps-1) * wide(shape[1]), wide(shape[1]), nil
	case "token_shift":
		return wide(shape[0]), wide(shape[0]), nil
	case "rg_lru":
		return 0, wide(shape[0]), nil
	case "selective_scan":
		return wide(shape[0]) / 16 * int64(32*shape[1]+16), 2*wide(shape[0]) + wide(shape[1]), nil
	case "linear_recurrence":
		s := ops.RecurrenceShapeOf(op)
		row = int64(s.KeyHeads)*wide(s.KeyDim) + int64(s.Heads)*wide(s.ValueDim)
		switch op.Word("decay") {
		case "head":
			row += wide(s.Heads)
		case "channel":
			row += int64(s.Heads) * wide(s.KeyDim)
		}
		if s.Erase > 0 {
			row += int64(s.Heads) * (wide(s.KeyDim) + wide(s.ValueDim))
		}
		return int64(s.Heads) * wide(s.ValueDim) * int64(s.KeyDim), row, nil
	}
	return 0, 0, fmt.Errorf("no target supports this op")
}

// recurrent adds the region of an op on a fixed-size state; act is the silu that only it
// feeds, or nil.
func (s *scheduler) recurrent(op, act *ir.Op) error {
	last := op
	if act != nil {
		last = act
	}
	s.keepResults(last)
	r := &Recurrent{Op: op, State: s.l.fixed[op.Args[0].Value], Out: s.l.places[last.Result()], Silu: act != nil, Args: make([]Place, len(op.Args))}
	if op.Def == ops.LinearRecurrence {
		r.Shape = ops.RecurrenceShapeOf(op)
	}
	for i, a := range op.Args {
		if a.Kind == ir.State || a.Kind == ir.Weight {
			continue
		}
		var err error
		if r.Args[i], err = s.placed(op, a.Value); err != nil {
			return err
		}
	}
	doc := fmt.Sprintf("%s: state %s", op.Def.Name, op.Args[0].State.Fields[0])
	if act != nil {
		doc += ", silu"
	}
	s.add(&Region{Name: op.Def.Name, Doc: doc, Role: op.Results[0].Role(), Work: r})
	return nil
}
