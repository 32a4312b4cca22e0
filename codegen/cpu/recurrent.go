package cpu

import (
	"fmt"
	"slices"

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
	if floats := cellScratch(work.Op); floats != "" {
		w.P(".scratch = c->own[tid].cells,")
		if !slices.Contains(e.need.cells, floats) {
			e.need.cells = append(e.need.cells, floats)
		}
	}
	w.P("};")
	w.P("ifl_run_%s(&a);", f.Type)
	return nil
}

// cellScratch returns the C expression of the floats of scratch per thread that an op
// needs, or "".
func cellScratch(op *ir.Op) string {
	shape := op.Args[0].State.Fields[0].Shape
	switch op.Def.Name {
	case "selective_scan":
		return fmt.Sprintf("ifl_scan_floats(%d)", shape[1])
	case "linear_recurrence":
		return fmt.Sprintf("ifl_recurrence_floats(%d, %d)", shape[1], shape[2])
	}
	return ""
}

// fixedStates returns the rows of ifl_fixed_states.
func (e *emitter) fixedStates() (rows []string) {
	for _, f := range e.layout.Fixed {
		rows = append(rows, fmt.Sprintf("{%d, %s, %s}", f.Count, ctext.Wide(f.Start), ctext.Wide(f.Row)))
	}
	return rows
}
