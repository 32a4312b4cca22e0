package cpu

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
)

// graph emits the functions of a graph's regions, and the function that runs them in
// order with a barrier after each.
func (e *emitter) graph(g *layout.Graph) error {
	calls := ctext.NewWriter(1)
	for _, n := range g.Schedule {
		if n.Region != nil {
			if err := e.region(calls, n.Region); err != nil {
				return err
			}
			continue
		}
		calls.P("for (int l = %d; l < %d; l++) {", n.Loop.Lo, n.Loop.Hi)
		for _, r := range n.Loop.Regions {
			if err := e.region(calls, r); err != nil {
				return err
			}
		}
		calls.P("}")
	}
	var yields []string
	for _, y := range g.Body.Yield {
		yields = append(yields, y.String())
	}
	e.regions.Comment(fmt.Sprintf("Graph %s: a step from token ids to %s.", g.Name, strings.Join(yields, ", ")))
	e.regions.P("static void graph_%s(ifl_ctx *c, const ifl_step *s, int tid) {", layout.CName(g.Name))
	e.regions.Raw(calls.String())
	e.regions.P("}")
	e.regions.P("")
	return nil
}

// region emits the function of a region and its call.
func (e *emitter) region(calls *ctext.Writer, r *layout.Region) error {
	e.w = ctext.NewWriter(1)
	if err := e.body(r); err != nil {
		return err
	}
	parameters, arguments, layer := "ifl_ctx *c, const ifl_step *s, int tid", "c, s, tid", "0"
	if r.Loop != nil {
		parameters, arguments, layer = parameters+", int l", arguments+", l", "l"
	}
	calls.P("IFL_REGION(%d, %s, %s(%s));", r.Number, layer, r.Function(), arguments)
	if _, ok := r.Work.(*layout.Exchange); ok { // all threads leave the step at the same place
		calls.P("if (c->own[tid].failed) return;")
	}
	w := e.regions
	w.Comment(r.Doc + ".")
	w.P("static void %s(%s) {", r.Function(), parameters)
	e.declare(w, r, e.w.String())
	w.P("}")
	w.P("")
	return nil
}

// layerIndex matches the layer's index in the C text of a region.
var layerIndex = regexp.MustCompile(`\bl\b`)

// declare writes a region's body, preceded by the declaration of the thread's own
// memory if the body uses it.
func (e *emitter) declare(w *ctext.Writer, r *layout.Region, body string) {
	if strings.Contains(body, "own->") {
		w.P("struct ifl_own *own = &c->own[tid];")
	}
	if r.Loop != nil && !layerIndex.MatchString(body) {
		w.P("(void)l;")
	}
	w.Raw(body)
}

func (e *emitter) body(r *layout.Region) error {
	switch work := r.Work.(type) {
	case *layout.Rows:
		return e.rows(r, work)
	case *layout.Matmul:
		return e.matmul(r, work)
	case *layout.Attention:
		return e.attention(r, work)
	case *layout.Recurrent:
		return e.recurrent(r, work)
	case *layout.Experts:
		return e.experts(r, work)
	case *layout.Exchange:
		return e.exchange(r, work)
	case *layout.Copy:
		e.eachRow(r.Role)
		e.w.P("memcpy(%s, %s, %d * sizeof(float));", e.names.Row(work.To, "t"), e.names.Row(work.From, "t"), work.To.Pitch)
		e.w.P("}")
		return nil
	}
	return fmt.Errorf("bug: region %s does %T", r.Name, r.Work)
}

// rowCount returns the C expression of the number of rows of a role.
func rowCount(role string) string {
	return map[string]string{"tokens": "s->tokens", "out_rows": "s->out_rows", "sequences": "s->seqs"}[role]
}

// eachRow opens a loop over this thread's rows of a role.
func (e *emitter) eachRow(role string) {
	e.w.P("const ifl_rows rows = ifl_rows_of_thread(c, tid, %s);", rowCount(role))
	e.w.P("for (int t = rows.first; t < rows.last; t++) {")
}

// rows emits row ops; each thread computes its rows.
func (e *emitter) rows(r *layout.Region, work *layout.Rows) error {
	e.eachRow(r.Role)
	text := e.names.NewRows(e.w, r.Loop, work.Keep)
	if err := text.Run(work.Ops); err != nil {
		return err
	}
	e.uses(text)
	e.w.P("}")
	return nil
}
