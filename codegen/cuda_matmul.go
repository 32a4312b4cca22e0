package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// rootRegion emits a fuse region, or a root that stands alone.
func (g *cudaGen) rootRegion(s *cudaSchedule, op *ir.Op) error {
	pro, root, epi, err := g.split(op)
	if err != nil {
		return err
	}
	switch root.Def.Name {
	case "matmul":
		return g.matmulRegion(s, op, pro, root, epi)
	case "attention":
		if len(pro)+len(epi) == 0 {
			return g.attentionRegion(s, root)
		}
	case "experts":
		if len(pro)+len(epi) == 0 {
			return g.expertsRegion(s, root)
		}
	}
	return fmt.Errorf("%s: the cuda target has no code for this op", pos(root))
}

// A cudaMatmul is one matmul region in emission.
type cudaMatmul struct {
	*matmulCode // ops, tail and the text of slices
	g           *cudaGen
	s           *cudaSchedule
	role        string
	slices      int    // rows of the product that a row of values has
	weights     string // address of the matrix
	act         cudaAct
	bytes       int64  // of a packed row
	alone       bool   // blocks with one row pack it themselves
	rows        string // where rows lie that need no packing, or ""
	impls       []cudaImpl
	at          int // of its site in the plan

	body   string // ops in front, of row t
	source string // address of what they leave
	row    int    // width of a row of their scratch
	temps  int
}

func (g *cudaGen) matmulRegion(s *cudaSchedule, op *ir.Op, pro []*ir.Op, root *ir.Op, epi []*ir.Op) error {
	c, err := g.matmulOf(s.plain(), op, pro, root, epi)
	if err != nil {
		return err
	}
	if len(g.cat.For("matmul", c.w.dtype)) == 0 {
		return fmt.Errorf("%s: the cuda target has no matmul for weights of type %s", pos(op), c.w.dtype)
	}
	if root.Int("slices") > 1 && (c.w.n%16 != 0 || len(c.pro) > 0 || !c.direct) {
		return fmt.Errorf("%s: the cuda target multiplies slices by whole panels of 16 rows, with nothing but rounding around; %s has %d rows", pos(op), root.Args[1].Value, c.w.n)
	}
	in := root.Args[0]
	m := &cudaMatmul{matmulCode: c, g: g, s: s, act: actOf(in.Type.Elem, outliers(in.Value)), role: root.Results[0].Role(), slices: max(root.Int("slices"), 1)}
	m.count = rowCount(m.role)
	if m.slices > 1 {
		m.count += fmt.Sprintf(" * %d", m.slices)
	}
	if m.weights, err = g.weightAt(root.Args[1], s.layer); err != nil {
		return err
	}
	m.bytes = m.act.bytes(c.w.k)
	if err := m.prologue(); err != nil {
		return err
	}
	return m.emit()
}

// prologue writes the ops in front of the product for one row.
func (m *cudaMatmul) prologue() error {
	r := m.g.rows(m.s, m.role)
	r.keep = func(v *ir.Value) bool { return m.outs[v] }
	kept := false
	for _, op := range m.pro {
		kept = kept || slices.ContainsFunc(op.Results, func(v *ir.Value) bool { return m.outs[v] })
	}
	var err error
	m.body, m.row, err = m.g.written(2, func() error {
		if err := r.run(m.pro); err != nil {
			return err
		}
		src, err := r.contiguous(m.x)
		m.source = src.ptr
		return err
	})
	if err != nil {
		return err
	}
	m.temps = r.temps
	const at = "(int64_t)t * "
	if len(m.pro) == 0 && m.act.name == "ifl_f32" && m.x.Type.Cols()%16 == 0 && strings.Contains(m.source, at) { // the rows are there already
		m.rows = strings.Replace(m.source, at, "(int64_t)0 * ", 1)
		m.bytes = int64(m.x.Type.Cols()) * 4 / int64(m.slices)
		return nil
	}
	m.alone = !kept && m.slices == 1
	return nil
}

// emit writes the region's kernels and their launches: where a block has one
// row, it packs that itself; else a kernel in front packs them all.
func (m *cudaMatmul) emit() error {
	g := m.g
	u := g.unit(m.root.Args[1].Name)
	u.needs(m.w.dtype)
	if m.w.deltas > 0 {
		u.headers = append(u.headers, "ifl_delta.cuh")
	}
	g.model.Plan.ActBytes = max(g.model.Plan.ActBytes, m.bytes*int64(m.slices))
	if m.alone && m.temps*m.row*4+int(m.bytes) > 40<<10 {
		m.alone = false
	}
	m.impls = m.choices()
	m.at = m.site()
	if m.rows == "" {
		k, err := g.kernel(u, "pack", u.name+"_pack", cudaRowThreads, m.temps*m.row*4, map[string]any{
			"Doc": "rows of " + u.name, "Row": m.row, "K": m.w.k, "Count": m.count, "Slices": m.slices, "Body": m.body, "Act": m.act.name, "Rows": "c->act", "Source": m.source})
		if err != nil {
			return err
		}
		m.when(m.s.launch(k, m.blocks(1)), func(c cudaImpl) bool { return !c.alone })
	}
	for _, c := range m.impls {
		if c.template == "" {
			continue
		}
		l, err := m.variant(u, c)
		if err != nil {
			return err
		}
		m.when(l, func(o cudaImpl) bool { return o == c })
	}
	if slices.ContainsFunc(m.impls, func(c cudaImpl) bool { return c.template == "" }) {
		if err := m.gemm(u); err != nil {
			return err
		}
	}
	return g.end(u, m.describe())
}

// variant writes an implementation's kernel and launches it.
func (m *cudaMatmul) variant(u *cudaUnit, c cudaImpl) (*manifest.CUDALaunch, error) {
	nt := c.nt
	panels := round16(m.w.n) / 16
	group, cols := m.columns()
	epilogue, row, temps, err := m.epilogue(group)
	if err != nil {
		return nil, err
	}
	const warps = 8
	red, warpScratch := max(cols/16, warps)*nt*16, temps*row // the last block may have fewer panels, and so more parts of K
	scratch := 8 * warpScratch
	shared := 4 * (red + nt*cols)
	holes := map[string]any{
		"Doc": fmt.Sprintf("%s for up to %d rows a block", m.describe(), nt), "K": m.w.k, "Panels": panels, "Group": group, "Cols": cols, "NT": nt,
		"Panel": m.act.panel(m.w.dtype, "NT"), "Red": red, "Count": m.count, "W": m.weights, "Alone": c.alone, "Act": m.act.name,
		"Epilogue": epilogue, "WarpScratch": warpScratch, "Prologue": m.body, "Source": m.source, "Row": row,
	}
	if c.alone {
		holes["Row"] = max(row, m.row)
		holes["WarpScratch"] = temps * max(row, m.row)
		scratch = max(8*temps*max(row, m.row), m.temps*max(row, m.row))
		shared += nt * int(m.bytes)
	}
	if holes["Deltas"] = int64(0); m.w.deltas > 0 {
		holes["Deltas"] = m.w.panels()
	}
	switch c.template {
	case "flat_gemm":
		warp, err := m.g.cat.FlatBytes(m.w.dtype)
		if err != nil {
			return nil, err
		}
		shared += warps * warp
		holes["Panel"] = m.act.flat(m.w.dtype)
		u.include("ifl_flat.cuh")
	case "finish":
		shared -= 4 * red
	}
	holes["RowScratch"] = (scratch + 3) &^ 3
	shared += 4 * ((scratch + 3) &^ 3)
	holes["Rows"], holes["RowBytes"] = "c->act", fmt.Sprintf("INT64_C(%d)", m.bytes)
	if m.rows != "" {
		holes["Rows"] = m.rows
	}
	k, err := m.g.kernel(u, c.template, fmt.Sprintf("%s_%s%d", u.name, c.template, nt), 256, shared, holes)
	if err != nil {
		return nil, err
	}
	return m.s.launch(k, blocksOf((panels*16+cols-1)/cols), m.blocks(nt)), nil
}

// blocks is a block for every `per` rows of the product.
func (m *cudaMatmul) blocks(per int) manifest.CUDADim {
	d := blocksPer(m.role, per)
	d.Times = m.times()
	return d
}

// times is what the plan says of slices: nothing where there is one.
func (m *cudaMatmul) times() int {
	if m.slices == 1 {
		return 0
	}
	return m.slices
}

// columns chooses how many columns a block computes: whole groups, enough for
// the warps, and more where there are so many that blocks would only queue.
func (m *cudaMatmul) columns() (group, cols int) {
	group = m.tail.Group
	cols = group
	least := 32
	if m.w.n > 32768 {
		least = 128
	}
	for cols < least {
		cols += group
	}
	if m.direct || m.tail.Whole {
		group = cols
	}
	return group, cols
}

// epilogue writes the ops behind the product for the columns n … of row t.
func (m *cudaMatmul) epilogue(group int) (text string, row, temps int, err error) {
	text, row, err = m.g.written(4, func() error {
		w := m.g.w
		width := "ifl_min_int(GROUP, n1 - n)"
		if m.direct {
			out := m.root.Results[0]
			w.p("for (int j = g.lane; j < %s; j += g.lanes) (%s + (int64_t)t * %d)[n + j] = y[j];", width, m.g.slotPtr(out), round16(m.w.n))
			return nil
		}
		for i, seg := range m.tail.Segments {
			if len(m.tail.Segments) > 1 {
				open := fmt.Sprintf("if (n < %d) {", seg.Hi)
				if i > 0 {
					open = fmt.Sprintf("if (n >= %d && n < %d) {", seg.Lo, seg.Hi)
				}
				w.p("%s", open)
			}
			base := "n"
			if seg.Lo > 0 {
				base = fmt.Sprintf("(n - %d)", seg.Lo)
			}
			one := width
			if !m.tail.Whole && round16(m.w.n)%m.tail.Group == 0 {
				one = "GROUP"
			}
			n, e := m.sliceOf(seg, base, one, seg.Hi-seg.Lo)
			if e != nil {
				return e
			}
			temps = max(temps, n)
			if len(m.tail.Segments) > 1 {
				w.p("}")
			}
		}
		return nil
	})
	return text, row, temps, err
}
