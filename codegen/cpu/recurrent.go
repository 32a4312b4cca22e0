package cpu

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
)

// recurrent emits an op on a fixed-size state.
func (e *emitter) recurrent(r *layout.Region, work *layout.Recurrent) error {
	f, err := e.names.Recurrent(e.w, r, work)
	if err != nil {
		return err
	}
	w := e.w
	w.P("const ifl_%s a = {", f.Type)
	w.P(".cells = {.step = s, .tid = tid, .threads = c->threads, %s},", f.Cells)
	for _, line := range f.Fields {
		w.P("%s", line)
	}
	if n := cellScratch(work.Op); n > 0 {
		w.P(".scratch = c->own[tid].cells,")
		e.need.cells = max(e.need.cells, n)
	}
	w.P("};")
	w.P("ifl_run_%s(&a);", f.Type)
	return nil
}

// cellScratch returns the floats of scratch per thread that an op needs: those of
// ifl_scan_floats and ifl_recurrence_floats.
func cellScratch(op *ir.Op) int {
	shape := op.Args[0].State.Fields[0].Shape
	switch op.Def.Name {
	case "selective_scan":
		return 32 * shape[1]
	case "linear_recurrence":
		d, v := layout.Round16(shape[1]), layout.Round16(shape[2])
		return 2*d*v + layout.CellRows*(7*d+4*v) + 4*d + 6*layout.CellRows*layout.CellRows
	}
	return 0
}

// fixedStates returns the rows of ifl_fixed_states.
func (e *emitter) fixedStates() (rows []string) {
	for _, f := range e.layout.Fixed {
		rows = append(rows, fmt.Sprintf("{%d, %s, %s}", f.Count, ctext.Wide(f.Start), ctext.Wide(f.Row)))
	}
	return rows
}
