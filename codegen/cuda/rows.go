package cuda

import (
	"strings"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
)

// rows emits row ops; one thread block per row.
func (e *emitter) rows(s *schedule, r *layout.Region, work *layout.Rows) error {
	last := work.Ops[len(work.Ops)-1].Def.Name
	u := e.unit((&layout.Region{Number: r.Number, Name: last}).Function())
	var text *ctext.Rows
	body, err := written(1, func(w *ctext.Writer) error {
		text = u.names.NewRows(w, r.Loop, work.Keep)
		return text.Run(work.Ops)
	})
	if err != nil {
		return err
	}
	var names []string
	for _, op := range work.Ops {
		names = append(names, op.Def.Name)
	}
	return e.rowKernel(s, u, r.Role, "row by row: "+strings.Join(names, ", "), body, text)
}

// copy emits a copy of a value's rows.
func (e *emitter) copy(s *schedule, r *layout.Region, work *layout.Copy) error {
	u := e.unit(r.Function())
	body, err := written(1, func(w *ctext.Writer) error {
		w.P("ifl_row_copy(%s, %s, %d);", u.names.Row(work.To, "t"), u.names.Row(work.From, "t"), work.From.Cols)
		return nil
	})
	if err != nil {
		return err
	}
	return e.rowKernel(s, u, r.Role, "copies "+work.Value.String(), body, &ctext.Rows{})
}

// rowKernel completes a unit with a kernel of one thread block per row, and launches it.
func (e *emitter) rowKernel(s *schedule, u *unit, role, doc, body string, text *ctext.Rows) error {
	u.include("ifl_route.cuh")
	u.include("ifl_select.cuh")
	u.include("ifl_streams.cuh")
	row := max(text.Scratch, 16)
	floats := text.Temps * row
	holes := map[string]any{"Doc": doc, "Row": row, "Count": rowCount(role), "Body": body, "Far": 0}
	if 4*floats > maxShared { // wide rows keep their temporaries in device memory
		holes["Far"] = floats
		e.out.Plan.RowFloats, floats = max(e.out.Plan.RowFloats, floats), 0
	}
	k, err := u.kernel("rows", u.name, rowThreads, 4*floats, holes)
	if err != nil {
		return err
	}
	s.launch(k, blocksPer(role, 1))
	return u.end(doc)
}
