package ctext

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
)

// selectThreads is the largest number of threads that select rows together.
const selectThreads = 256

// selectRows emits the choice of the rows that a token attends to.
func (r *Rows) selectRows(list []*ir.Op, at int) error {
	op := list[at]
	st := r.Layout.State(op.Args[2].Value)
	if st.Elem.IsBlock() {
		return fmt.Errorf("%s: state %s is %s; an indexer's rows are f32, f16 or bf16", layout.Position(op), st.Name, st.Elem)
	}
	q, err := r.contiguous(op.Args[0].Value)
	if err != nil {
		return err
	}
	w, err := r.contiguous(op.Args[1].Value)
	if err != nil {
		return err
	}
	base, err := r.State(op.Args[2], r.loop)
	if err != nil {
		return err
	}
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	top := op.Int("top")
	room := layout.Round16(top + max(top, selectThreads))
	scratch := r.scratchOf(2*room + 64)
	r.w.P("ifl_row_select_%s(%s, %s, %s, %d, %d, %d, %d, %s, %s, s, t, %s, %d);", st.Elem, dst.ptr, q.ptr, w.ptr, op.Int("heads"), st.Dim,
		top, op.Int("every"), base, r.Size(st, PageBytes), scratch.ptr, room)
	r.where[op.Results[0]] = dst
	return nil
}

// fill emits a row of equal numbers.
func (r *Rows) fill(ops []*ir.Op, at int) error {
	op := ops[at]
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	r.w.P("%s", r.Backend.Loop(r.width(op.Results[0])))
	r.w.P("%s", r.Backend.Store(r.at(dst), "ifl_set1("+Float(op.Float("value"))+")"))
	r.w.P("}")
	r.Backend.Sync(r.w)
	r.where[op.Results[0]] = dst
	return nil
}
