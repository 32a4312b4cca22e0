package cuda

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// warps is the number of warps of a matmul's thread block: IFL_WARPS.
const warps = 8

// A matmul is a matmul region that is being emitted.
type matmul struct {
	*layout.Matmul
	u           *unit
	s           *schedule
	region      *layout.Region
	count       string // C expression of the number of rows
	weights     string // address of the matrix
	act         act
	bytes       int64  // of a packed row
	rows        string // address of the packed rows
	ready       bool   // rows of floats, which need no packing
	packPrivate bool   // blocks with one row pack it themselves
	source      string // address of row t before packing
	computed    bool   // source computes the row; else it is in memory
	kept        bool   // source also stores values that outlive the region
	front       scratch
	tail        scratch
	adapters    []string // sites of adapters: C expressions of type ifl_lora_part
	adapted     int      // index in the plan's Adapted
	impls       []impl
	at          int // index of its matmul in the plan
	cols        int // columns per thread block
}

// scratch returns the scratch floats per row that the prologue or the epilogue
// needs.
type scratch struct{ temps, row int }

func (x scratch) floats() int { return x.temps * x.row }

func (e *emitter) matmul(s *schedule, r *layout.Region, work *layout.Matmul) error {
	if len(e.cat.For("matmul", work.Weight.DType)) == 0 {
		return fmt.Errorf("region %s: the cuda target has no matmul for weights of type %s", r.Name, work.Weight.DType)
	}
	m := &matmul{Matmul: work, u: e.unit(r.Function()), s: s, region: r, act: actOf(work.Act, work.Outliers), count: rowCount(r.Role), rows: "c->act"}
	if m.Slices > 1 {
		m.count += fmt.Sprintf(" * %d", m.Slices)
	}
	m.u.decodes(work.Weight.DType)
	if work.Weight.SparseOutliers > 0 {
		m.u.include("ifl_sparse.cuh")
	}
	var err error
	if m.weights, err = m.u.names.Weight(work.Arg, r.Loop); err != nil {
		return err
	}
	if err = m.findSites(); err != nil {
		return err
	}
	m.bytes = m.act.bytes(work.Weight.K)
	m.cols = m.columns()
	if err := m.writeFront(); err != nil {
		return err
	}
	if err := m.writeTail(); err != nil {
		return err
	}
	return m.emit()
}

// writeFront writes the function of the prologue for row t. Rows of floats
// without a prologue are read directly.
func (m *matmul) writeFront() error {
	place, stored := m.u.e.layout.Place(m.X)
	if len(m.Before) == 0 && stored {
		m.source, m.front.row = m.u.names.Row(place, "t"), 16
		// The slices of two rows of a view have other columns between them.
		m.ready = m.act.name == "ifl_f32" && place.Cols%16 == 0 && (m.Slices == 1 || place.Pitch == place.Cols)
		if m.ready {
			m.rows, m.bytes = m.u.names.Rows(place), int64(place.Pitch)*4/int64(m.Slices)
			return nil
		}
		m.packPrivate = m.Slices == 1
		return nil
	}
	var text *ctext.Rows
	source := ""
	body, err := written(1, func(w *ctext.Writer) (err error) {
		text = m.u.names.NewRows(w, m.region.Loop, m.Keep)
		if err = text.Run(m.Before); err == nil {
			source, err = text.Source(m.X)
		}
		return err
	})
	if err != nil {
		return err
	}
	m.front = scratch{text.Temps, max(text.Scratch, 16)}
	m.kept = slices.ContainsFunc(m.Before, func(op *ir.Op) bool {
		return slices.ContainsFunc(op.Results, func(v *ir.Value) bool { return m.Keep[v] })
	})
	m.packPrivate = !m.kept && m.Slices == 1
	name := m.u.name + "_row"
	m.source, m.computed = name+"(c, s, l, g, own, t)", true
	return m.u.render("row", name, map[string]any{"Row": m.front.row, "Body": body, "Source": source})
}

// writeTail writes the function of the epilogue for a tile of the output.
func (m *matmul) writeTail() error {
	m.tail.row = 16
	body, err := written(2, func(w *ctext.Writer) error {
		width := "ifl_min_int(GROUP, n1 - n)"
		if m.Direct {
			place, _ := m.u.e.layout.Place(m.Out)
			row := m.u.names.Row(place, "t")
			if m.Slices > 1 {
				row = fmt.Sprintf("(%s + (int64_t)t * %d)", m.u.names.Rows(place), m.Pitch())
			}
			w.P("for (int j = g.lane; j < %s; j += g.lanes) %s[n + j] = y[j];", width, row)
			return nil
		}
		if !m.Tail.Whole && layout.Round16(m.Weight.N)%m.Tail.Group == 0 {
			width = "GROUP"
		}
		for i, seg := range m.Tail.Segments {
			several := len(m.Tail.Segments) > 1
			if several && i == 0 {
				w.P("if (n < %d) {", seg.Hi)
			} else if several {
				w.P("if (n >= %d && n < %d) {", seg.Lo, seg.Hi)
			}
			text := m.u.names.Slice(w, m.region.Loop, m.Matmul, seg, ctext.Minus("n", seg.Lo), width)
			if err := text.Finish(); err != nil {
				return err
			}
			m.tail = scratch{max(m.tail.temps, text.Temps), max(m.tail.row, min(text.Scratch, m.sliceCols()))}
			if several {
				w.P("}")
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	group := fmt.Sprint(m.Tail.Group)
	if m.Direct || m.Tail.Whole {
		group = "COLS"
	}
	return m.u.render("tail", m.u.name+"_tail", map[string]any{"Group": group, "Row": m.tail.row, "WarpScratch": m.tail.floats(), "Body": body, "Adapters": m.adapters, "Role": m.role()})
}

// emit writes the region's kernels and their launches. If a block has one row,
// it packs the row itself; otherwise a separate kernel packs all rows first.
func (m *matmul) emit() error {
	u := m.u
	p := &u.e.out.Plan
	p.ActBytes = max(p.ActBytes, m.bytes*int64(m.Slices))
	if m.front.floats()*4+int(m.bytes) > 40<<10 {
		m.packPrivate = false
	}
	m.impls = m.choices()
	m.at = m.dispatched()
	if !m.ready {
		holes := map[string]any{"Doc": "rows of " + u.name, "K": m.Weight.K, "Count": m.count, "Slices": m.Slices, "Act": m.act.name, "Rows": m.rows, "Source": m.source}
		holes["Floats"], holes["From"] = m.storedRows()
		k, err := u.kernel("pack", u.name+"_pack", rowThreads, m.front.floats()*4, holes)
		if err != nil {
			return err
		}
		m.when(m.s.launch(k, m.blocks(1)), func(c impl) bool { return !c.packPrivate })
	}
	if err := m.adapt(); err != nil {
		return err
	}
	for _, c := range m.impls {
		if c.template == "" {
			continue
		}
		l, err := m.variant(c)
		if err != nil {
			return err
		}
		m.when(l, func(o impl) bool { return o == c })
	}
	if slices.ContainsFunc(m.impls, func(c impl) bool { return c.template == "" }) {
		if err := m.gemm(); err != nil {
			return err
		}
	}
	return u.end(m.region.Doc)
}

// variant writes the kernel of an implementation and launches it.
func (m *matmul) variant(c impl) (*manifest.CUDALaunch, error) {
	u, mem, panels := m.u, m.memory(c), m.Weight.Panels()
	holes := map[string]any{
		"Doc": fmt.Sprintf("%s for up to %d rows a block", m.region.Doc, c.nt), "K": m.Weight.K, "Panels": panels, "Cols": mem.cols, "NT": c.nt,
		"Panel": m.act.panel(m.Weight.DType, "NT"), "Red": mem.red, "Tile": mem.tile, "Count": m.count, "W": m.weights, "PackPrivate": c.packPrivate,
		"Act": m.act.name, "Tail": u.name + "_tail<COLS>", "Source": m.source, "Rows": m.rows, "RowBytes": ctext.Wide(m.bytes), "SparseOutliers": int64(0),
		"RowScratch": mem.floats, "Scratch": mem.shared - 4*mem.floats,
	}
	if m.Weight.SparseOutliers > 0 {
		holes["SparseOutliers"] = m.Weight.PanelsBytes()
	}
	perSM := 2
	if c.template == "flat_gemm" {
		perSM = 1 // weights in flight and accumulators fill the registers
		holes["Panel"] = m.act.flat(m.Weight.DType)
		u.include("ifl_flat.cuh")
	}
	k, err := u.kernel(c.template, fmt.Sprintf("%s_%s%d", u.name, c.template, c.nt), 32*warps, mem.shared, holes)
	if err != nil {
		return nil, err
	}
	grid := []manifest.CUDADim{blocksOf((panels*16 + mem.cols - 1) / mem.cols), m.blocks(c.nt)}
	if c.template != "finish" {
		grid = append(grid, manifest.CUDADim{N: mem.parts, Parts: c.nt * mem.cols, PerSM: perSM})
	}
	return m.s.launch(k, grid...), nil
}

// A blockMemory is the work of a thread block of an implementation and its shared memory.
type blockMemory struct {
	cols   int // columns of the output
	parts  int // most blocks that may divide K
	red    int // gemv: floats of partial sums, in front of the tile of the output
	tile   int // flat_gemm: offset of the tile in bytes
	floats int // scratch of the row ops, in floats
	shared int // all in bytes
}

// memory returns the work and the memory of a thread block of an implementation.
func (m *matmul) memory(c impl) (b blockMemory) {
	b.cols, b.floats = m.cols, warps*m.tail.floats()
	if c.packPrivate {
		b.floats = max(b.floats, m.front.floats())
		b.shared = c.nt * int(m.bytes)
	}
	b.floats = (b.floats + 3) &^ 3
	switch c.template {
	case "gemv":
		b.red = max(b.cols/16, warps) * c.nt * 16 // the last block may have fewer panels, and so more parts of K
		// The first loads of a warp cover 256 or 512 columns of a panel. With more parts, warps
		// would have nothing to load.
		perPanel := max(warps/(b.cols/16), 1)
		b.parts = (m.Weight.K + 256*perPanel - 1) / (256 * perPanel)
		b.shared += 4 * (b.red + c.nt*b.cols)
	case "flat_gemm":
		b.cols = m.flatColumns()
		chunk, buffers := templates.CUDAFlatBuffers(m.Weight.DType, c.nt)
		b.parts = (m.Weight.K + chunk - 1) / chunk
		if tile := 4 * c.nt * b.cols; b.cols <= 16*warps {
			b.shared = max(buffers, tile)
		} else {
			b.tile, b.shared = buffers, buffers+tile
		}
	case "finish":
		b.cols = m.finishColumns()
		b.shared = 4 * c.nt * b.cols
	}
	b.shared += 4 * b.floats
	return b
}

// blocks returns a launch dimension of one block per `per` rows.
func (m *matmul) blocks(per int) manifest.CUDADim {
	d := blocksPer(m.region.Role, per)
	d.Times = m.times()
	return d
}

// times returns the number of slices for the plan; 0 for one.
func (m *matmul) times() int {
	if m.Slices == 1 {
		return 0
	}
	return m.Slices
}

// sliceCols returns the maximum number of columns that the epilogue processes together.
func (m *matmul) sliceCols() int {
	if m.Direct || m.Tail.Whole {
		return max(m.cols, m.flatColumns())
	}
	return m.Tail.Group
}

// flatColumns returns the number of columns per block of flat_gemm: a panel for each warp.
func (m *matmul) flatColumns() int { return m.Tail.Group * max(16*warps/m.Tail.Group, 1) }

// columns returns the number of columns per block: whole groups.
func (m *matmul) columns() int {
	return (columnsFor(m.Weight.N) + m.Tail.Group - 1) / m.Tail.Group * m.Tail.Group
}

// columnsFor returns the columns per block of n columns: the more the better, because
// every block repeats the prologue, as long as two blocks remain for each SM of the
// largest GPU.
func columnsFor(n int) int {
	const blocks = 2 * 148 // B200
	c := 128
	for c > 16 && n < blocks*c {
		c /= 2
	}
	return c
}
