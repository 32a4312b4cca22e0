package ctext

import (
	"fmt"
	"strconv"

	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/templates"
)

// A slice is the part of each row in a tile of a matmul's output; nil is the whole
// row.
type slice struct {
	segment *templates.Segment
	tail    *templates.Tail
	out     *ir.Value // the matmul's whole output
	base    string    // C expression of its first column in the segment
	width   string    // C expression of its number of columns
	cols    int       // columns of the segment
}

// Slice returns an emitter for the ops of a segment of a matmul's epilogue, on the
// slice of row t at y.
func (s *Symbols) Slice(w *Writer, in *layout.Loop, m *layout.Matmul, seg *templates.Segment, base, width string) *Rows {
	r := s.NewRows(w, in, m.Keep)
	r.slice = &slice{segment: seg, tail: m.Tail, out: m.Out, base: base, width: width, cols: seg.Hi - seg.Lo}
	r.where[seg.Value] = loc{ptr: "y", step: 16, own: true}
	return r
}

// Finish stores the values of the slice and of the whole output if they are used
// after the ops, and emits the ops, which may overwrite them.
func (r *Rows) Finish() error {
	seg, out := r.slice.segment, r.slice.out
	keep := func(v *ir.Value, base string) error {
		to, err := r.stored(v, base)
		if err == nil {
			r.copyTo(seg.Value, r.where[seg.Value], to)
		}
		return err
	}
	if r.keep[seg.Value] {
		if err := keep(seg.Value, r.base(seg.Value)); err != nil {
			return err
		}
	}
	if out != seg.Value && r.keep[out] { // the output is split and also read as a whole
		if err := keep(out, Plus(strconv.Itoa(seg.Lo), r.slice.base)); err != nil {
			return err
		}
	}
	return r.Run(seg.Ops)
}

// base returns the first column of a value that the code computes.
func (r *Rows) base(v *ir.Value) string {
	if r.slice == nil {
		return "0"
	}
	return r.slice.part(v, r.slice.base)
}

// width returns the number of columns of a value that the code computes: a multiple of
// 16 unless it is the whole row.
func (r *Rows) width(v *ir.Value) string {
	if r.slice == nil {
		return r.Width(v.Type.Cols())
	}
	return r.slice.part(v, r.slice.width)
}

// part returns the number of columns of one part of an interleaved value, given
// those of all parts.
func (s *slice) part(v *ir.Value, columns string) string {
	n := s.tail.Halves[v]
	if n == 0 || columns == "0" {
		return columns
	}
	return columns + " / " + strconv.Itoa(n)
}

// heads returns the heads of a given width in the slice: the first one and
// their number, as C expressions.
func (r *Rows) heads(v *ir.Value, width int) (first, count string) {
	s := r.slice
	if s == nil {
		return "0", strconv.Itoa(v.Type.Cols() / width)
	}
	count = strconv.Itoa(s.tail.Group / width)
	if s.cols%s.tail.Group != 0 {
		count = fmt.Sprintf("ifl_min_int(GROUP, %d - %s) / %d", s.cols, s.base, width)
	}
	if s.base == "0" {
		return "0", count
	}
	return fmt.Sprintf("%s / %d", s.base, width), count
}

// holds reports whether the slice contains columns of a value.
func (r *Rows) holds(v *ir.Value) bool { return r.slice == nil || r.slice.segment.In[v] }
