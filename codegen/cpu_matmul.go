package codegen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// rootRegion emits a fuse region, or a root that stands alone.
func (g *cpuGen) rootRegion(s *schedule, op *ir.Op) error {
	pro, root, epi, err := g.split(op)
	if err != nil {
		return err
	}
	switch root.Def.Name {
	case "matmul":
		return g.matmulRegion(s, op, pro, root, epi)
	case "attention":
		if len(pro)+len(epi) > 0 {
			return fmt.Errorf("%s: attention on the cpu target stands alone", pos(op))
		}
		return g.attentionRegion(s, root)
	case "experts":
		return g.expertsRegion(s, pro, root, epi)
	}
	return fmt.Errorf("%s: the cpu target has no code for this op", pos(root))
}

// A matmulCode is one matmul region in emission.
type matmulCode struct {
	g        *cpuGen
	s        *schedule
	root     *ir.Op
	pro, epi []*ir.Op
	x        *ir.Value // what is packed: the activation before quantize_act
	w        *packed
	enum, fn string // activation kind
	tail     *templates.Tail
	outs     map[*ir.Value]bool // values that leave the region
	name     string
	direct   bool   // the kernel writes straight to the output buffer
	slices   int    // runs of columns of each row that are rows to the kernel
	count    string // C expression of the row count
}

func (g *cpuGen) matmulRegion(s *schedule, op *ir.Op, pro []*ir.Op, root *ir.Op, epi []*ir.Op) error {
	m, err := g.matmulOf(s, op, pro, root, epi)
	if err != nil {
		return err
	}
	m.enum, m.fn = actKind(root.Args[0].Type.Elem)
	m.count = rowCount(root.Results[0].Role())
	if m.slices = root.Int("slices"); m.slices > 1 {
		if m.w.n%16 != 0 || len(m.pro) > 0 {
			return fmt.Errorf("%s: the cpu target multiplies slices by whole panels of 16 rows, with nothing but rounding in front; %s has %d rows", pos(op), root.Args[1].Value, m.w.n)
		}
		m.count += fmt.Sprintf(" * %d", m.slices)
	}
	m.name = root.Args[1].Name
	return m.emit(op)
}

func (m *matmulCode) emit(op *ir.Op) error {
	g := m.g
	site, err := g.siteFor(op, m.root.Args[1].Value, m.fn)
	if err != nil {
		return err
	}
	g.out.Manifest.Sites[site.index].Outliers = outliers(m.root.Args[0].Value)
	g.need.k = max(g.need.k, m.w.k)
	g.need.act[m.enum] = max(g.need.act[m.enum], m.w.k*m.slices)
	g.need.yCols = max(g.need.yCols, m.tail.Group)
	fn := fmt.Sprintf("r%d_%s", g.region, cName(m.name))
	g.w.p("static const ifl_mm %s_mm[] = {%s};", fn, strings.Join(site.symbols, ", "))
	g.w.p("static const int %s_tile[] = %s;", fn, cInts(site.tiles))
	g.begin(m.s, m.name, m.describe())
	g.regionReads(m.root.Args[1].Value, site.index)
	w := g.w
	w.p("enum { K = %d, PANELS = %d, GROUP = %d, GROUPS = %d };", m.w.k, round16(m.w.n)/16, m.tail.Group, m.groups())
	w.p("const int rows = %s, impl = ifl_choose(c, %d, rows), tm = %s_tile[impl];", m.count, site.index, fn)
	w.p("const int alone = rows <= IFL_ALONE; /* few rows: every thread packs them all, without a barrier */")
	w.p("uint8_t *act = alone ? own->act : c->act;")
	if err := m.pack(); err != nil {
		return err
	}
	if err := m.product(fn); err != nil {
		return err
	}
	g.end(m.s)
	return nil
}

// describe names the region's ops for the comment above its function.
func (m *matmulCode) describe() string {
	var names []string
	for _, p := range m.pro {
		names = append(names, p.Def.Name)
	}
	if m.root.Args[0].Type.Elem != tensor.F32 {
		names = append(names, "quantize_act")
	}
	names = append(names, fmt.Sprintf("matmul %s %s[%d, %d]", m.root.Args[1].Value, m.w.dtype, m.w.n, m.w.k))
	for _, e := range m.epi {
		names = append(names, e.Def.Name)
	}
	return strings.Join(names, " → ") + "."
}

func (m *matmulCode) groups() int { return (round16(m.w.n) + m.tail.Group - 1) / m.tail.Group }

// A dispatchSite is what the C of one site calls: every candidate, by its place
// in the dispatch table.
type dispatchSite struct {
	index   int
	symbols []string
	tiles   []int // rows of a tile of each
}

// site adds the dispatch site of one matrix, with the default rows of the
// !kernel note on op.
func (g *cpuGen) site(op *ir.Op, w *ir.Value) (dispatchSite, error) {
	return g.siteFor(op, w, templates.Act(g.weights[w].dtype))
}

// siteFor is site for activations packed as act says.
func (g *cpuGen) siteFor(op *ir.Op, w *ir.Value, act string) (dispatchSite, error) {
	p := g.weights[w]
	ds := dispatchSite{index: len(g.out.Manifest.Sites)}
	site := manifest.Site{Name: g.graphAt.Name + "." + w.Name, N: p.n, K: p.k, DType: p.dtype.String()}
	cands := g.cat.CandidatesFor("matmul", p.dtype, act)
	if len(cands) == 0 {
		return ds, fmt.Errorf("%s: the cpu target has no matmul for weights of type %s and %s activations", pos(op), p.dtype, act)
	}
	for _, k := range cands {
		ds.symbols = append(ds.symbols, g.use(k, p.dtype, "extern void %s(const uint8_t *, int, int, const uint8_t *, int, float *, int64_t, uint8_t *);"))
		ds.tiles = append(ds.tiles, k.Tile)
		site.Impls = append(site.Impls, k.Impl)
	}
	site.Symbols, site.Tiles, site.Act = ds.symbols, ds.tiles, act
	site.Rows = defaultRows(op, site.Impls)
	g.out.Manifest.Sites = append(g.out.Manifest.Sites, site)
	return ds, nil
}

// defaultRows gives from how many rows on each implementation is used: −1 for
// never. Without a note the flat kernel does it all.
func defaultRows(op *ir.Op, impls []string) []int {
	rows := make([]int, len(impls))
	for i := range rows {
		rows[i] = -1
	}
	for _, n := range op.Notes {
		if n.Name != "kernel" {
			continue
		}
		for _, a := range n.Args {
			if i := slices.Index(impls, a.Val); i >= 0 {
				rows[i] = max(a.From, 1)
			}
		}
		return rows
	}
	if i := slices.Index(impls, "flat_gemm"); i >= 0 {
		rows[i] = 1
	} else {
		rows[0] = 1
	}
	return rows
}

// pack emits the prologue: row ops, and packing into the kernel's tiles.
func (m *matmulCode) pack() error {
	g, w := m.g, m.g.w
	w.p("const int tiles = (rows + tm - 1) / tm;")
	w.p("for (int i = alone ? 0 : tid; i < tiles; i += alone ? 1 : c->threads) {")
	w.p("uint8_t *tile = act + i * ifl_tile_bytes(%s, K, tm);", m.enum)
	w.p("const int mt = ifl_min_int(tm, rows - i * tm);")
	w.p("for (int m = 0; m < mt; m++) {")
	slice := ""
	if m.slices > 1 {
		w.p("const int t = (i * tm + m) / %d;", m.slices)
		slice = fmt.Sprintf(" + (i * tm + m) %% %d * K", m.slices)
	} else {
		w.p("const int t = i * tm + m;")
	}
	r := g.wholeRows(m.s, m.root.Results[0].Role())
	r.keep = func(v *ir.Value) bool { return m.outs[v] }
	if err := r.run(m.pro); err != nil {
		return err
	}
	src, err := r.contiguous(m.x)
	if err != nil {
		return err
	}
	products := m.see(src.ptr + slice)
	if n := outliers(m.root.Args[0].Value); n > 0 {
		w.p("ifl_pack_%s_outliers(tile, %s, K, mt, m, %d);", m.fn, src.ptr+slice, n)
	} else {
		w.p("ifl_pack_%s(tile, %s, K, mt, m);", m.fn, src.ptr+slice)
	}
	w.p("}")
	m.unpack()
	w.p("}")
	w.p("if (!alone) ifl_barrier(c->team);")
	if products != "" {
		w.p("%s", products)
	}
	return nil
}

// see emits what calibration needs: the row's squares, added up by column. It
// costs a branch a row where nobody calibrates. Rows that every thread packs are
// counted by one. The result is what adds up products of columns, when all rows
// are there; few rows are left out.
func (m *matmulCode) see(row string) (products string) {
	g, p := m.g, m.w
	if m.root.Args[1].Index != nil {
		return "" // one element of many by itself
	}
	at, layers := strconv.FormatInt(g.need.seen, 10), 1
	if p.layers != nil {
		layers = p.layers.Len()
		at += fmt.Sprintf(" + (%s - %d) * (K + 1)", m.s.layer, p.lo)
	}
	site := &g.out.Manifest.Sites[len(g.out.Manifest.Sites)-1]
	site.Weight, site.Seen = m.root.Args[1].Value.Name, g.need.seen
	g.need.seen += int64(layers) * int64(p.k+1)
	g.w.p("if (c->seen && (!alone || tid == 0)) ifl_see_row(c->seen + tid * IFL_SEEN + %s, %s, K);", at, row)
	if m.slices > 1 {
		return "" // more rows than tokens
	}
	width := momentSquare(p.k)
	parts := (p.k + width - 1) / width
	at, site.Moments, site.Square = strconv.FormatInt(g.need.moments, 10), g.need.moments, width
	if layers > 1 {
		at += fmt.Sprintf(" + (%s - %d) * INT64_C(%d)", m.s.layer, p.lo, parts*width*width)
	}
	g.need.moments += int64(layers) * int64(parts*width*width)
	g.need.moment = max(g.need.moment, parts*width)
	g.w.p("if (c->moments && !alone) memcpy(c->rows + (int64_t)t * IFL_MOMENT_ROW, %s, K * sizeof(float));", row)
	return fmt.Sprintf("if (c->moments && !alone) ifl_add_products(c->moments + %s, c->rows, rows, K, %d, tid, c->threads);", at, width)
}

// mostSquare bounds the squares of columns between which calibration keeps
// products: memory and the time to factor them grow with it.
const mostSquare = 768

// momentSquare divides k columns into squares of equal width, whole blocks of
// any type.
func momentSquare(k int) int {
	parts := (k + mostSquare - 1) / mostSquare
	return ((k+parts-1)/parts + 63) / 64 * 64
}

// product emits the loop over this thread's groups of columns: the kernel, and
// the ops behind it on what the kernel has just written.
func (m *matmulCode) product(fn string) error {
	g, w := m.g, m.g.w
	addr, err := g.weightAt(m.root.Args[1], m.s.layer)
	if err != nil {
		return err
	}
	w.p("const uint8_t *w = %s;", addr)
	w.p("ifl_columns part = ifl_columns_of(GROUPS, tid, c->threads, ifl_groups_a_call(rows, GROUP), own->drawn);")
	w.p("while (ifl_more_columns(&part, &c->drawn)) {")
	w.p("const int n0 = part.from * GROUP, n1 = ifl_min_int(part.to * GROUP, PANELS * 16), cols = n1 - n0;")
	panel := m.w.panel()
	call := fmt.Sprintf("%s_mm[impl](w + (n0 / 16) * INT64_C(%d), K, cols / 16, act, rows, %%s, own->mm);", fn, panel)
	if m.direct {
		out := m.root.Results[0]
		y := fmt.Sprintf("%s + n0, %d", g.slotPtr(out), round16(m.w.n))
		w.p(call, y)
		m.addDeltas(y)
		m.findBest(out)
		m.endProduct()
		return nil
	}
	w.p(call, "own->y, cols")
	m.addDeltas("own->y, cols")
	if m.tail.Whole {
		err = m.wholeTail()
	} else {
		err = m.groupTail()
	}
	m.endProduct()
	return err
}

// findBest lets the head look for each row's likeliest token while the logits are
// in the member's cache: nobody need read them all again who wants no other.
func (m *matmulCode) findBest(out *ir.Value) {
	g := m.g
	at := g.outputAt(out)
	if at < 0 || out.Role() != "wanted" || m.slices > 1 || m.w.n%16 != 0 {
		return
	}
	gr := &g.out.Manifest.Graphs[slices.Index(g.mod.Graphs, g.graphAt)]
	if gr.Outputs[at-gr.At].Name != "logits" {
		return
	}
	gr.Best = true
	g.w.p("if (s->best) ifl_find_best(s->best + (int64_t)tid * s->wanted, rows, s->out[%d] + n0, %d, n0, cols);", at, m.w.n)
}

func (m *matmulCode) endProduct() {
	m.g.w.p("}")
	m.g.w.p("own->drawn = ifl_drawn_by(&part, c->threads);")
}

// wholeTail treats all columns of the call as one slice of each row.
func (m *matmulCode) wholeTail() error {
	w := m.g.w
	w.p("for (int t = 0; t < rows; t++) {")
	w.p("float *y = own->y + (int64_t)t * cols;")
	err := m.slice(m.tail.Segments[0], "n0", "cols", 0)
	w.p("}")
	return err
}

// groupTail goes group by group, with the code of the segment it falls in.
func (m *matmulCode) groupTail() error {
	w := m.g.w
	w.p("for (int n = n0; n < n1; n += GROUP) {")
	for i, seg := range m.tail.Segments {
		if len(m.tail.Segments) > 1 {
			if i == 0 {
				w.p("if (n < %d) {", seg.Hi)
			} else if i+1 < len(m.tail.Segments) {
				w.p("else if (n < %d) {", seg.Hi)
			} else {
				w.p("else {")
			}
		}
		w.p("for (int t = 0; t < rows; t++) {")
		w.p("float *y = own->y + (int64_t)t * cols + (n - n0);")
		base := "n"
		if seg.Lo > 0 {
			base = fmt.Sprintf("(n - %d)", seg.Lo)
		}
		width := "GROUP"
		if round16(m.w.n)%m.tail.Group != 0 {
			width = "ifl_min_int(GROUP, n1 - n)"
		}
		if err := m.slice(seg, base, width, seg.Hi-seg.Lo); err != nil {
			return err
		}
		w.p("}")
		if len(m.tail.Segments) > 1 {
			w.p("}")
		}
	}
	w.p("}")
	return nil
}

// slice emits a segment's ops on one slice of row t, which lies at y.
func (m *matmulCode) slice(seg *templates.Segment, base, width string, segCols int) error {
	_, err := m.sliceOf(seg, base, width, segCols)
	return err
}

// sliceOf is slice; it says how many rows of scratch the ops take.
func (m *matmulCode) sliceOf(seg *templates.Segment, base, width string, segCols int) (temps int, err error) {
	half := func(v *ir.Value, s string) string {
		if n := m.tail.Halves[v]; n > 0 {
			return s + " / " + strconv.Itoa(n)
		}
		return s
	}
	group := m.tail.Group
	r := &rowCode{
		g: m.g, layer: m.s.layer, repeat: m.s.repeat,
		row:   map[string]string{m.root.Results[0].Role(): "t"},
		base:  func(v *ir.Value) string { return half(v, base) },
		width: func(v *ir.Value) string { return half(v, width) },
		head: func(v *ir.Value, hw int) (string, string) {
			count := strconv.Itoa(group / hw)
			if segCols%group != 0 {
				count = fmt.Sprintf("ifl_min_int(GROUP, %d - %s) / %d", segCols, base, hw)
			}
			return fmt.Sprintf("%s / %d", base, hw), count
		},
		keep:  func(v *ir.Value) bool { return m.outs[v] },
		has:   func(v *ir.Value) bool { return seg.In[v] },
		where: map[*ir.Value]loc{seg.Value: {ptr: "y", step: 16, own: true}},
	}
	if err := r.run(seg.Ops); err != nil {
		return 0, err
	}
	if m.outs[seg.Value] {
		r.copyTo(seg.Value, r.where[seg.Value], loc{ptr: r.buffer(seg.Value, r.base(seg.Value)), step: 16})
	}
	return r.temps, nil
}
