package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A cudaSchedule is the order in which the host launches kernels.
type cudaSchedule struct {
	launches []manifest.CUDALaunch
	layer    string // "l" in the body of a repeat
	repeat   *ir.Op
}

func (s *cudaSchedule) launch(kernel int, grid ...manifest.CUDADim) *manifest.CUDALaunch {
	l := manifest.CUDALaunch{Kernel: kernel}
	for i := range l.Grid {
		l.Grid[i] = manifest.CUDADim{N: 1}
		if i < len(grid) {
			l.Grid[i] = grid[i]
		}
	}
	s.launches = append(s.launches, l)
	return &s.launches[len(s.launches)-1]
}

func blocksOf(n int) manifest.CUDADim { return manifest.CUDADim{N: n} }

func blocksPer(role string, per int) manifest.CUDADim {
	return manifest.CUDADim{N: 1, Rows: role, Per: per}
}

// graph emits the kernels of a graph and their launches.
func (g *cudaGen) graph(s *cudaSchedule, gr *ir.Graph) error {
	if err := g.block(s, gr.Body); err != nil {
		return err
	}
	for i, y := range gr.Body.Yield {
		if g.outputAt(y) >= 0 {
			continue
		}
		to := fmt.Sprintf("s->out[%d]", g.outputsAt(gr)+i)
		if err := g.copyRows(s, "output_"+y.Name, y, to); err != nil {
			return err
		}
	}
	return nil
}

// plain is the schedule's place in the module, as the text of row ops wants it.
func (s *cudaSchedule) plain() *schedule { return &schedule{layer: s.layer, repeat: s.repeat} }

// block emits ops in order.
func (g *cudaGen) block(s *cudaSchedule, b *ir.Block) error {
	return regionEmitter{
		loop: func(op *ir.Op) error { return g.loop(s, op) },
		rows: func(ops []*ir.Op) error { return g.rowRegion(s, ops) },
		root: func(op *ir.Op) error { return g.rootRegion(s, op) },
		comm: func(op *ir.Op, after []*ir.Op) error { return g.commRegion(s, op, after) },
	}.each(b)
}

// loop emits the body of a repeat once; the host runs it for each layer.
func (g *cudaGen) loop(s *cudaSchedule, op *ir.Op) error {
	if s.layer != "" {
		return fmt.Errorf("%s: a repeat inside a repeat", pos(op))
	}
	for i, a := range op.Args {
		if err := g.carry(s, a.Value, op.Body.Params[i]); err != nil {
			return err
		}
	}
	in := &cudaSchedule{layer: "l", repeat: op}
	if err := g.block(in, op.Body); err != nil {
		return err
	}
	for i, y := range op.Body.Yield {
		if err := g.carry(in, y, op.Body.Params[i]); err != nil {
			return err
		}
	}
	one := 0
	for _, l := range in.launches {
		if l.From <= 1 && (l.Choice == nil || slices.Contains(l.Choice.Impls, 0)) { // the first is for one row
			one++
		}
	}
	g.model.Regions = max(g.model.Regions, one)
	s.launches = append(s.launches, manifest.CUDALaunch{Lo: op.Int("lo"), Hi: op.Int("hi"), Body: in.launches})
	return nil
}

// carry copies a value to the buffer of another, unless they share it.
func (g *cudaGen) carry(s *cudaSchedule, from, to *ir.Value) error {
	if g.slots[from] == g.slots[to] {
		return nil
	}
	return g.copyRows(s, "carry_"+to.Name, from, g.slotPtr(to))
}

func (g *cudaGen) copyRows(s *cudaSchedule, name string, v *ir.Value, to string) error {
	n := round16(v.Type.Cols())
	w := &cWriter{depth: 1}
	w.p("ifl_row_copy(%s + (int64_t)t * %d, %s + (int64_t)t * %d, %d);", to, n, g.slotPtr(v), n, v.Type.Cols())
	return g.rowKernel(s, name, "copies "+v.String(), v.Role(), w.b.String(), 0, 0)
}

// rowKernel emits a kernel of a block a row and launches it.
func (g *cudaGen) rowKernel(s *cudaSchedule, name, doc, role, body string, temps, row int) error {
	u := g.unit(name)
	u.headers = append(u.headers, "ifl_route.cuh")
	for _, p := range g.weights {
		if strings.Contains(body, "ifl_format_"+p.dtype.String()+">") {
			u.needs(p.dtype)
		}
	}
	slices.Sort(u.formats)
	k, err := g.kernel(u, "rows", u.name, cudaRowThreads, temps*row*4, map[string]any{"Doc": doc, "Row": max(row, 1), "Count": rowCount(role), "Body": body})
	if err != nil {
		return err
	}
	s.launch(k, blocksPer(role, 1))
	return g.end(u, doc+".")
}

// rowRegion emits row ops: a block of threads a row.
func (g *cudaGen) rowRegion(s *cudaSchedule, ops []*ir.Op) error {
	inside := map[*ir.Op]bool{}
	var names []string
	for _, op := range ops {
		inside[op] = true
		names = append(names, op.Def.Name)
	}
	escapes := map[*ir.Value]bool{}
	g.usesOutside(g.graphAt.Body, inside, escapes)
	role := firstRow(ops[0]).Role()
	r := g.rows(s, role)
	r.keep = func(v *ir.Value) bool { return escapes[v] }
	body, row, err := g.written(2, func() error { return r.run(ops) })
	if err != nil {
		return err
	}
	return g.rowKernel(s, names[len(names)-1], "row by row: "+strings.Join(names, ", "), role, body, r.temps, row)
}

// rows is row code over whole rows; t is the row.
func (g *cudaGen) rows(s *cudaSchedule, role string) *rowCode {
	return g.wholeRows(s.plain(), role)
}

// written gives the text that f writes, and the widest row of scratch in it.
func (g *cudaGen) written(depth int, f func() error) (text string, row int, err error) {
	w, before := g.w, g.need.row
	g.w, g.need.row = &cWriter{depth: depth - 1}, 0
	err = f()
	text, row = g.w.b.String(), max(g.need.row, 16)
	g.w, g.need.row = w, before
	return text, row, err
}
