package cpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// A matmul is a matmul region that is being emitted.
type matmul struct {
	*layout.Matmul
	e      *emitter
	w      *ctext.Writer
	region *layout.Region
	entry  *manifest.Matmul
}

func (e *emitter) matmul(r *layout.Region, work *layout.Matmul) error {
	call, impls, err := e.call(work.Call, actName(work.Act))
	if err != nil {
		return fmt.Errorf("%s: %w", layout.Position(work.Root), err)
	}
	m := &matmul{Matmul: work, e: e, w: e.w, region: r, entry: &e.out.Manifest.Matmuls[call]}
	m.entry.Outliers = work.Outliers
	e.reads(r, manifest.Product{Matmul: call, Weight: work.Weight.Name, Rows: max(work.Slices, 1)})
	e.need.k = max(e.need.k, work.Weight.K)
	e.need.group = max(e.need.group, work.Tail.Group)
	e.acts[work.Act] = max(e.acts[work.Act], work.Weight.K*work.Slices)
	rows := rowCount(r.Role)
	if work.Slices > 1 {
		rows += fmt.Sprintf(" * %d", work.Slices)
	}
	m.w.P("enum { K = %d, PANELS = %d, GROUP = %d, GROUPS = %d };", work.Weight.K, work.Weight.Panels(), work.Tail.Group, work.Groups())
	m.w.P("const int rows = %s;", rows)
	if err := m.adapters(); err != nil {
		return err
	}
	m.w.P("const ifl_packing p = ifl_packing_of(c, tid, %s, %d, rows);", impls, call)
	if err := m.pack(); err != nil {
		return err
	}
	return m.product()
}

// reads records a matmul of a region in the manifest.
func (e *emitter) reads(r *layout.Region, p manifest.Product) {
	region := &e.out.Manifest.Regions[r.Number]
	region.Products = append(region.Products, p)
}

// actName returns the catalog's name of a packing of activations.
func actName(dt tensor.DType) string {
	if dt.IsActivation() || dt == tensor.BF16 {
		return dt.String()
	}
	return tensor.F32.String()
}

// actKind returns the enumerator of ifl_kernel.h for a packing of activations.
func actKind(dt tensor.DType) string { return "IFL_" + strings.ToUpper(actName(dt)) }

// call adds the use of a matrix to the manifest, with all candidate kernels; the
// dispatch table selects one. It returns the index of the call and the name of the C
// table of its kernels.
func (e *emitter) call(call layout.Call, act string) (number int, impls string, err error) {
	w := call.Weight
	kernels := e.cat.CandidatesFor("matmul", w.DType, act)
	if len(kernels) == 0 {
		return 0, "", fmt.Errorf("%s: the cpu target has no matmul for weights of type %s and %s activations; expected %s", call.Name, w.DType, act, templates.Act(w.DType))
	}
	entry := manifest.Matmul{Name: call.Name, N: w.N, K: w.K, DType: w.DType.String(), Act: act}
	var rows []string
	for _, k := range kernels {
		sym := e.use(k, w.DType, "void %s(const uint8_t *, int, int, const uint8_t *, int, float *, int64_t, uint8_t *);")
		entry.Symbols, entry.Tiles, entry.Impls = append(entry.Symbols, sym), append(entry.Tiles, k.Tile), append(entry.Impls, k.Impl)
		rows = append(rows, fmt.Sprintf("{%s, %d}", sym, k.Tile))
	}
	entry.Rows = call.Defaults(entry.Impls)
	e.out.Manifest.Matmuls = append(e.out.Manifest.Matmuls, entry)
	return len(e.out.Manifest.Matmuls) - 1, e.implTable("matmul_"+w.DType.String()+"_"+act, strings.Join(rows, ", ")), nil
}

// implTable returns the name of a table of kernels; equal tables are defined once.
func (e *emitter) implTable(name, rows string) string {
	if e.tables[rows] == "" {
		e.tables[rows] = name
		e.listed = append(e.listed, fmt.Sprintf("static const ifl_impl %s[] = {%s};", name, rows))
	}
	return e.tables[rows]
}

// pack emits the prologue's row ops and the packing into the kernel's tiles.
func (m *matmul) pack() error {
	w := m.w
	w.P("for (int i = p.first; i < p.tiles; i += p.step) {")
	w.P("uint8_t *tile = p.act + i * ifl_tile_bytes(%s, K, p.tile);", actKind(m.Act))
	w.P("const int mt = ifl_tile_rows(&p, i);")
	w.P("for (int m = 0; m < mt; m++) {")
	slice := "0"
	if m.Slices > 1 {
		w.P("const int t = (i * p.tile + m) / %d;", m.Slices)
		slice = fmt.Sprintf("(i * p.tile + m) %% %d * K", m.Slices)
	} else {
		w.P("const int t = i * p.tile + m;")
	}
	text := m.e.names.NewRows(w, m.region.Loop, m.Keep)
	text.Width = func(columns int) string {
		if columns == m.Weight.K {
			return "K"
		}
		return strconv.Itoa(columns)
	}
	if err := text.Run(m.Before); err != nil {
		return err
	}
	source, err := text.Source(m.X)
	if err != nil {
		return err
	}
	m.e.uses(text)
	source = ctext.Plus(source, slice)
	statistics := m.calibrate(source)
	if m.Outliers > 0 {
		w.P("ifl_pack_%s_outliers(tile, %s, K, mt, m, %d);", actName(m.Act), source, m.Outliers)
	} else {
		w.P("ifl_pack_%s(tile, %s, K, mt, m);", actName(m.Act), source)
	}
	if m.Adapters != nil {
		copied := 0
		if len(m.Before) > 0 { // computed rows are in scratch memory
			copied = 1
		}
		w.P("if (adapted) ifl_lora_pack(c, s, &p, tid, &waiting, %s(s, t), t, %s, %d, K, adapters, %d);", m.seqOf(), source, copied, len(m.Adapters.Parts))
	}
	w.P("}")
	if m.Weight.SparseOutliers > 0 { // after all rows of a tile, because the last one completes the tile
		m.e.need.sparse = max(m.e.need.sparse, m.Weight.K)
		w.P("for (int m = 0; m < mt; m++) ifl_unpack_row(%s, tile, %s, K, mt, m, i * p.tile + m, rows);", actKind(m.Act), sparseRows)
	}
	w.P("}")
	if m.Adapters != nil {
		w.P("if (adapted) ifl_lora_packed(c, &p, tid, &waiting, K, adapters, %d);", len(m.Adapters.Parts))
	}
	w.P("ifl_packed(c, &p);")
	if statistics != "" {
		w.P("%s", statistics)
	}
	return nil
}

// adapters emits the table of the sites of the matmul's weight.
func (m *matmul) adapters() error {
	if m.Adapters == nil {
		return nil
	}
	m.e.need.adapters = max(m.e.need.adapters, len(m.Adapters.Parts))
	layer, err := m.e.names.Layer(m.Adapters.Arg, m.region.Loop)
	if err != nil {
		return err
	}
	var rows []string
	for _, p := range m.Adapters.Parts {
		rows = append(rows, fmt.Sprintf("{%s, %d, %d, %d}", ctext.Plus(layer, strconv.Itoa(p.Site)), p.First, p.Step, p.Panels))
	}
	m.w.P("const ifl_lora_part adapters[] = { %s };", strings.Join(rows, ", "))
	m.w.P("ifl_lora_waiting waiting = {0};")
	m.w.P("const int adapted = s->adapter && ifl_lora_any(c, s, adapters, %d);", len(rows))
	return nil
}

// seqOf returns the C function that gives the sequence of a row.
func (m *matmul) seqOf() string {
	return map[string]string{"tokens": "ifl_token_seq", "out_rows": "ifl_out_row_seq"}[m.region.Role]
}

// sparseRows returns the C expression of the activations for sparse outliers.
const sparseRows = "(p.pack_private ? own->sparse : c->sparse)"

// product emits the loop over this thread's groups of columns: the kernel call, and
// the epilogue on its output.
func (m *matmul) product() error {
	w := m.w
	weights, err := m.e.names.Weight(m.Arg, m.region.Loop)
	if err != nil {
		return err
	}
	w.P("const uint8_t *w = %s;", weights)
	w.P("ifl_columns part = ifl_columns_of_thread(c, tid, rows, GROUPS, GROUP);")
	w.P("while (ifl_more_columns(&part, &c->claimed)) {")
	w.P("const int n0 = part.from * GROUP, n1 = ifl_min_int(part.to * GROUP, PANELS * 16), cols = n1 - n0;")
	y := "own->y, cols"
	if m.Direct {
		p, _ := m.e.layout.Place(m.Out)
		y = fmt.Sprintf("%s, %d", ctext.Plus(m.e.names.Rows(p), "n0"), m.Pitch())
	}
	w.P("p.run(w + n0 / 16 * %s, K, cols / 16, p.act, rows, %s, own->mm);", ctext.Wide(m.Weight.PanelBytes()), y)
	if m.Weight.SparseOutliers > 0 {
		w.P("ifl_add_sparse(w + %s, PANELS, n0 / 16, cols / 16, %s, K, rows, %s);", ctext.Wide(m.Weight.PanelsBytes()), sparseRows, y)
	}
	if m.Adapters != nil {
		w.P("if (adapted) ifl_lora_add(c, s, %s, rows, %s, n0, cols, adapters, %d);", m.seqOf(), y, len(m.Adapters.Parts))
	}
	switch {
	case m.Direct:
		m.findBest()
	case m.Tail.Whole:
		err = m.wholeTail()
	default:
		err = m.groupTail()
	}
	w.P("}")
	w.P("own->claimed = ifl_claimed_by(&part, c->threads);")
	return err
}

// findBest emits the search for the argmax of each row while the logits are in the
// thread's cache, so that greedy sampling need not read them again.
func (m *matmul) findBest() {
	p, _ := m.e.layout.Place(m.Out)
	if p.Buffer != nil || m.region.Role != "out_rows" || m.Slices > 1 || m.Weight.N%16 != 0 {
		return
	}
	if g := m.e.out.Manifest.Graphs[m.region.Graph.Entry]; g.Outputs[p.Output-g.At].Name != "logits" {
		return
	}
	m.e.header("ifl_best.h")
	m.w.P("if (s->best) ifl_find_best(s->best + (int64_t)tid * rows, rows, %s, %d, n0, cols);", ctext.Plus(m.e.names.Rows(p), "n0"), m.Pitch())
}

// wholeTail emits the epilogue with all columns of the call as one slice of each row.
func (m *matmul) wholeTail() error {
	m.w.P("for (int t = 0; t < rows; t++) {")
	m.w.P("float *y = own->y + (int64_t)t * cols;")
	err := m.slice(m.Tail.Segments[0], "n0", "cols")
	m.w.P("}")
	return err
}

// groupTail emits the epilogue group by group, with the code of each group's segment.
func (m *matmul) groupTail() error {
	w := m.w
	w.P("for (int n = n0; n < n1; n += GROUP) {")
	for i, seg := range m.Tail.Segments {
		switch last := len(m.Tail.Segments) - 1; {
		case last == 0:
		case i == 0:
			w.P("if (n < %d) {", seg.Hi)
		case i < last:
			w.P("else if (n < %d) {", seg.Hi)
		default:
			w.P("else {")
		}
		w.P("for (int t = 0; t < rows; t++) {")
		w.P("float *y = own->y + (int64_t)t * cols + (n - n0);")
		width := "GROUP"
		if layout.Round16(m.Weight.N)%m.Tail.Group != 0 {
			width = "ifl_min_int(GROUP, n1 - n)"
		}
		if err := m.slice(seg, ctext.Minus("n", seg.Lo), width); err != nil {
			return err
		}
		w.P("}")
		if len(m.Tail.Segments) > 1 {
			w.P("}")
		}
	}
	w.P("}")
	return nil
}

// slice emits a segment's ops on one slice of row t at y.
func (m *matmul) slice(seg *templates.Segment, base, width string) error {
	text := m.e.names.Slice(m.w, m.region.Loop, m.Matmul, seg, base, width)
	err := text.Finish()
	m.e.uses(text)
	return err
}

// header adds a header that the step includes.
func (e *emitter) header(name string) {
	if !slices.Contains(e.headers, name) {
		e.headers = append(e.headers, name)
	}
}
