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

// A Fixed is the placement of a fixed-size state, in cells.
type Fixed struct {
	Elements
	Op    *ir.Op // an op on it
	Start int64  // floats in a cell for the state before its rows
	Row   int64  // floats for each row
}

// A Recurrent is an op on a fixed-size state.
type Recurrent struct {
	Op    *ir.Op
	State *Fixed
	Args  []Place // of the arguments that are values
	Out   Place
	Taps  int                 // of a short convolution; a token shift has 2
	Silu  bool                // the result is that of silu on the op's
	Shape ops.RecurrenceShape // of a linear_recurrence
}

// placeFixed assigns an offset to the cells of a fixed-size state.
func (l *Layout) placeFixed(v *ir.Value) error {
	f := &Fixed{Elements: l.elements(v, "CELL_", l.CellBytes())}
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
	f.Each = 4 * (f.Start + CellRows*f.Row)
	l.Fixed = append(l.Fixed, f)
	l.fixed[v] = f
	return nil
}

// CellBytes returns the total size of one cell of every element of every fixed-size
// state.
func (l *Layout) CellBytes() int64 {
	n := int64(0)
	for _, f := range l.Fixed {
		n += f.Bytes()
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
	case "short_conv", "token_shift":
		cols, n := wide(shape[len(shape)-1]), taps(op)
		if n > maxTaps {
			return 0, 0, fmt.Errorf("%d taps; targets support at most %d", n, maxTaps)
		}
		return int64(n-1) * cols, cols, nil
	case "pool_rows": // all fields but the last, the number of rows, which follows from the position
		return 0, int64(shape[0]-1) * wide(shape[1]), nil
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

// taps returns the taps of a short convolution, or of a token shift, which is one
// whose second tap is 0; 0 for other ops.
func taps(op *ir.Op) int {
	switch op.Def {
	case ops.ShortConv:
		return op.Args[0].State.Fields[0].Shape[0] + 1
	case ops.TokenShift:
		return 2
	}
	return 0
}

// recurrent adds the region of an op on a fixed-size state; act is the silu that only it
// feeds, or nil.
func (s *scheduler) recurrent(op, act *ir.Op) error {
	last := op
	if act != nil {
		last = act
	}
	s.keepResults(last)
	r := &Recurrent{Op: op, State: s.l.fixed[op.Args[0].Value], Out: s.l.places[last.Result()], Taps: taps(op), Silu: act != nil, Args: make([]Place, len(op.Args))}
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
