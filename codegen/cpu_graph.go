package codegen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A schedule is the order in which the team runs region functions.
type schedule struct {
	cWriter
	layer   string // index of the enclosing repeat
	repeat  *ir.Op
	regions int // in the current repeat's body
}

// graph emits the region functions of a graph, then the function that runs
// them in order with a barrier between each two.
func (g *cpuGen) graph(i int) error {
	gr := g.mod.Graphs[i]
	g.graphAt = gr
	s := &schedule{}
	s.p("static void graph_%s(ifl_ctx *c, const ifl_step *s, int tid) {", cName(gr.Name))
	if err := g.block(s, gr.Body); err != nil {
		return err
	}
	if err := g.finish(s, gr); err != nil {
		return err
	}
	s.p("}")
	g.w.comment(fmt.Sprintf("Graph %s: a step from token ids to %s.", gr.Name, yields(gr.Body)))
	g.w.b.WriteString(s.b.String())
	g.w.p("")
	return nil
}

func yields(b *ir.Block) string {
	out := ""
	for i, y := range b.Yield {
		if i > 0 {
			out += ", "
		}
		out += y.String()
	}
	return out
}

// block emits ops in order.
func (g *cpuGen) block(s *schedule, b *ir.Block) error {
	return regionEmitter{
		loop: func(op *ir.Op) error { return g.loop(s, op) },
		rows: func(ops []*ir.Op) error { return g.rowRegion(s, ops) },
		root: func(op *ir.Op) error { return g.rootRegion(s, op) },
		comm: func(op *ir.Op, after []*ir.Op) error { return g.commRegion(s, op, after) },
	}.each(b)
}

// firstRow is a value whose row count is the op's.
func firstRow(op *ir.Op) *ir.Value {
	if len(op.Results) > 0 {
		return op.Results[0]
	}
	return op.Args[len(op.Args)-1].Value
}

// begin opens a region function, and calls it in the schedule.
func (g *cpuGen) begin(s *schedule, name, doc string) string {
	fn := fmt.Sprintf("r%d_%s", g.region, cName(name))
	g.out.Manifest.Regions = append(g.out.Manifest.Regions, manifest.Region{Graph: g.graphAt.Name, Name: name, Doc: strings.TrimSuffix(doc, ".")})
	at := g.region
	g.region++
	s.regions++
	g.w.comment(doc)
	if s.layer != "" {
		g.w.p("static void %s(ifl_ctx *c, const ifl_step *s, int tid, int %s) {", fn, s.layer)
		s.p("ifl_begin(c, tid, %d, %s);", at, s.layer)
		s.p("%s(c, s, tid, %s);", fn, s.layer)
	} else {
		g.w.p("static void %s(ifl_ctx *c, const ifl_step *s, int tid) {", fn)
		s.p("ifl_begin(c, tid, %d, 0);", at)
		s.p("%s(c, s, tid);", fn)
	}
	s.p("ifl_meet(c, tid);")
	g.outer, g.w = g.w, &cWriter{depth: 1}
	return fn
}

// layerName finds uses of the layer's index in the text of a region.
var layerName = regexp.MustCompile(`\bl\b`)

// end closes a region function, whose body is known by now: it declares the
// thread's own memory where that is used.
func (g *cpuGen) end(s *schedule) {
	body := g.w.b.String()
	g.w, g.outer = g.outer, nil
	if strings.Contains(body, "own->") {
		g.w.p("struct ifl_own *own = &c->own[tid];")
	}
	if s.layer != "" && !layerName.MatchString(body) {
		g.w.p("(void)%s;", s.layer)
	}
	g.w.b.WriteString(body)
	g.w.p("}")
	g.w.p("")
}

// loop emits a repeat: the body's regions, and a C loop in the schedule.
func (g *cpuGen) loop(s *schedule, op *ir.Op) error {
	if s.layer != "" {
		return fmt.Errorf("%s: a repeat inside a repeat", pos(op))
	}
	for i, a := range op.Args {
		if err := g.copyRegion(s, a.Value, op.Body.Params[i]); err != nil {
			return err
		}
	}
	s.p("for (int l = %d; l < %d; l++) {", op.Int("lo"), op.Int("hi"))
	s.layer, s.repeat, s.regions = "l", op, 0
	if err := g.block(s, op.Body); err != nil {
		return err
	}
	for i, y := range op.Body.Yield {
		if err := g.copyRegion(s, y, op.Body.Params[i]); err != nil {
			return err
		}
	}
	g.out.Regions = max(g.out.Regions, s.regions)
	s.layer, s.repeat = "", nil
	s.p("}")
	return nil
}

// copyRegion copies a value to the buffer of another, unless they share it.
func (g *cpuGen) copyRegion(s *schedule, from, to *ir.Value) error {
	if g.slots[from] == g.slots[to] {
		return nil
	}
	g.begin(s, "carry_"+to.Name, fmt.Sprintf("Carry %s to %s.", from, to))
	g.rowLoop(from)
	n := round16(from.Type.Cols())
	g.w.p("memcpy(%s + (int64_t)t * %d, %s + (int64_t)t * %d, %d * sizeof(float));", g.slotPtr(to), n, g.slotPtr(from), n, n)
	g.w.p("}")
	g.end(s)
	return nil
}

// rowLoop opens a loop over this thread's share of the rows of a value.
func (g *cpuGen) rowLoop(v *ir.Value) {
	count := rowCount(v.Role())
	g.w.p("const int t1 = ifl_share(%s, tid + 1, c->threads);", count)
	g.w.p("for (int t = ifl_share(%s, tid, c->threads); t < t1; t++) {", count)
}

func rowCount(role string) string {
	return map[string]string{"tokens": "s->tokens", "wanted": "s->wanted", "sequences": "s->seqs"}[role]
}

// rowRegion emits row ops: each thread does its share of the rows.
func (g *cpuGen) rowRegion(s *schedule, ops []*ir.Op) error {
	doc := ""
	for i, op := range ops {
		if i > 0 {
			doc += ", "
		}
		doc += op.Def.Name
	}
	g.begin(s, ops[len(ops)-1].Def.Name, "Row by row: "+doc+".")
	if err := g.sharedRows(s, ops); err != nil {
		return err
	}
	g.end(s)
	return nil
}

// sharedRows emits a loop over this thread's share of the rows that does row ops.
func (g *cpuGen) sharedRows(s *schedule, ops []*ir.Op) error {
	inside := map[*ir.Op]bool{}
	for _, op := range ops {
		inside[op] = true
	}
	escapes := map[*ir.Value]bool{}
	g.usesOutside(g.graphAt.Body, inside, escapes)
	v := firstRow(ops[0])
	g.rowLoop(v)
	r := g.wholeRows(s, v.Role())
	r.keep = func(v *ir.Value) bool { return escapes[v] }
	if err := r.run(ops); err != nil {
		return err
	}
	g.w.p("}")
	return nil
}

// usesOutside marks the values that ops outside the set, or yields, read.
func (g *cpuGen) usesOutside(b *ir.Block, inside map[*ir.Op]bool, out map[*ir.Value]bool) {
	for _, op := range b.Ops {
		if !inside[op] {
			for _, a := range op.Args {
				out[a.Value] = true
			}
		}
		if op.Body != nil {
			g.usesOutside(op.Body, inside, out)
		}
	}
	for _, y := range b.Yield {
		out[y] = true
	}
}

// wholeRows is row code over whole rows, in a C loop over t.
func (g *cpuGen) wholeRows(s *schedule, of string) *rowCode {
	return &rowCode{
		g: g, layer: s.layer, repeat: s.repeat,
		row:   map[string]string{of: "t"},
		base:  func(*ir.Value) string { return "0" },
		width: func(v *ir.Value) string { return fmt.Sprint(v.Type.Cols()) },
		head: func(v *ir.Value, width int) (string, string) {
			return "0", fmt.Sprint(v.Type.Cols() / width)
		},
		where: map[*ir.Value]loc{},
	}
}

// finish copies outputs that do not already stand in the caller's arrays.
func (g *cpuGen) finish(s *schedule, gr *ir.Graph) error {
	for i, y := range gr.Body.Yield {
		if g.outputAt(y) >= 0 {
			continue
		}
		g.begin(s, "output_"+y.Name, fmt.Sprintf("Output %s.", y))
		g.rowLoop(y)
		n := round16(y.Type.Cols())
		g.w.p("memcpy(s->out[%d] + (int64_t)t * %d, %s + (int64_t)t * %d, %d * sizeof(float));", g.outputsAt(gr)+i, n, g.slotPtr(y), n, n)
		g.w.p("}")
		g.end(s)
	}
	return nil
}

// outputAt is the place of a value among the step's arrays of results when its region
// writes straight to the caller's array, else −1.
func (g *cpuGen) outputAt(v *ir.Value) int {
	for i, y := range g.graphAt.Body.Yield {
		if (y == v || y.Op != nil && y.Op.Def.Name == "fuse" && fuseYield(y) == v) && y.Kind == ir.Result && y.Op.Def.Name != "repeat" {
			return g.outputsAt(g.graphAt) + i
		}
	}
	return -1
}

// fuseYield is the value inside a fuse region behind one of its results.
func fuseYield(result *ir.Value) *ir.Value {
	for i, r := range result.Op.Results {
		if r == result {
			return result.Op.Body.Yield[i]
		}
	}
	return nil
}

// slotPtr is the C expression of a value's buffer.
func (g *cpuGen) slotPtr(v *ir.Value) string {
	if i := g.outputAt(v); i >= 0 {
		return fmt.Sprintf("s->out[%d]", i)
	}
	if i := slices.Index(g.list, g.slots[v]); i >= 0 {
		return fmt.Sprintf("c->slot[%d]", i)
	}
	panic("bug: value " + v.String() + " has no buffer")
}

// weightAt is the address of the current element of a weight.
func (g *cpuGen) weightAt(a ir.Arg, layer string) (string, error) {
	p := g.weights[a.Value]
	region := "c->weights"
	if p.table {
		region = "c->tables"
	}
	at := fmt.Sprintf("%s + INT64_C(%d)", region, p.at)
	switch {
	case p.layers == nil:
		return at, nil
	case a.Index != nil:
		return fmt.Sprintf("%s + INT64_C(%d)", region, p.at+int64(a.Index[0]-p.lo)*p.stride), nil
	case layer == "":
		return "", fmt.Errorf("%s is an array: outside a repeat it needs an index", a.Value)
	}
	i := layer
	if p.lo > 0 {
		i = fmt.Sprintf("(%s - %d)", layer, p.lo)
	}
	return fmt.Sprintf("%s + %s * INT64_C(%d)", at, i, p.stride), nil
}

// stateAt is the address of the first page of the current element of a state.
func (g *cpuGen) stateAt(a ir.Arg, layer string) (string, error) {
	st := g.states[a.Value]
	at := fmt.Sprintf("INT64_C(%d)", st.at)
	switch {
	case len(a.Count) == 0:
	case a.Index != nil:
		at = fmt.Sprintf("INT64_C(%d)", st.at+int64(a.Index[0]-st.lo)*st.page)
	case layer == "":
		return "", fmt.Errorf("%s is an array: outside a repeat it needs an index", a.Value)
	default:
		i := layer
		if st.lo > 0 {
			i = fmt.Sprintf("(%s - %d)", layer, st.lo)
		}
		at = fmt.Sprintf("(%s + %s * INT64_C(%d))", at, i, st.page)
	}
	return fmt.Sprintf(g.spell.state, at), nil
}

// actKind is how rows are packed for a weight type: the enumerator of
// ifl_kernel.h and the packing function's suffix.
func actKind(dt tensor.DType) (enum, suffix string) {
	switch dt {
	case tensor.A8B32:
		return "IFL_A8_B32", "a8_b32"
	case tensor.A8B64:
		return "IFL_A8_B64", "a8_b64"
	case tensor.BF16:
		return "IFL_BF16", "bf16"
	}
	return "IFL_F32", "f32"
}

// outliers is how many groups of columns are taken out of each row of a matmul's
// input before its blocks are rounded.
func outliers(x *ir.Value) int {
	if x.Op == nil || x.Op.Def.Name != "quantize_act" {
		return 0
	}
	return x.Op.Int("outliers")
}

// regionReads says of the region that is open which matrix it reads.
func (g *cpuGen) regionReads(w *ir.Value, site int) {
	r := &g.out.Manifest.Regions[len(g.out.Manifest.Regions)-1]
	r.Weight, r.Site = w.Name, site
}
