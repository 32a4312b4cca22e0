package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/templates"
)

// step returns the translation unit of the model: defines and headers, the functions
// of its regions, and the tables that ifl_main.h reads.
func (e *emitter) step() (string, error) {
	tables := e.modelTables()
	w := ctext.NewWriter(0)
	e.names.Define(w)
	return templates.Step(templates.StepData{
		Name: e.layout.Module.Name, Defines: e.defines(), Headers: e.includes(), Prototypes: e.protos, Impls: e.listed,
		Symbols: w.String(), Regions: e.regions.String(), Tables: tables,
	})
}

// mostScratch is the context in tokens up to which attention's scratch lets threads divide
// the chunks of one sequence: 53 MB for each thread of a model with 64 values per head.
const mostScratch = 1 << 20

// defines returns the macros of ifl_region.h that the model needs.
func (e *emitter) defines() (list []templates.Define) {
	add := func(used bool, name string, value any) {
		if used {
			list = append(list, templates.Define{Name: name, Value: fmt.Sprint(value)})
		}
	}
	n, c := &e.need, &e.calib
	add(len(e.layout.Buffers) > 0, "IFL_BUFFERS", len(e.layout.Buffers))
	add(n.rows > 0, "IFL_ROW", n.row)
	add(n.rows > 0, "IFL_SCRATCH_ROWS", n.rows)
	add(n.k > 0, "IFL_PRODUCT_K", n.k)
	add(n.k > 0, "IFL_GROUP", n.group)
	add(len(e.acts) > 0, "IFL_PACKED", 1)
	add(n.sparse > 0, "IFL_SPARSE_K", n.sparse)
	add(n.adapters > 0, "IFL_LORA_PARTS", n.adapters)
	add(c.sums > 0, "IFL_CALIB_SUMS", ctext.Wide(c.sums))
	add(c.sums > 0, "IFL_CALIB_HESSIANS", ctext.Wide(c.hessians))
	add(c.sums > 0, "IFL_CALIB_ROW", c.row)
	if a := n.attention; a != nil {
		add(true, "IFL_ATTENTION", fmt.Sprintf("%d, %d, %d, %d", a.heads, a.dim, a.vdim, (min(e.layout.Context, mostScratch)+layout.PageRows-1)/layout.PageRows))
	}
	add(len(e.layout.Fixed) > 0, "IFL_CELLS", e.layout.CellGraphs())
	add(len(n.cells) > 0, "IFL_CELL_SCRATCH", strings.Join(n.cells, ", "))
	add(len(n.mixtures) > 0, "IFL_EXPERTS", 1)
	add(e.layout.Crosses(), "IFL_CROSS", e.layout.CrossEntry())
	add(n.ranks > 0, "IFL_RANKS", n.ranks)
	add(len(e.layout.States) > 0, "IFL_STATES", 1)
	add(len(e.lookups()) > 0, "IFL_LOOKUPS", 1)
	return list
}

// headerUses lists the headers that not every model needs, each with a function or
// type that it declares.
var headerUses = []struct{ header, use string }{
	{"ifl_sparse.h", "ifl_add_sparse("},
	{"ifl_cells.h", "ifl_run_conv("},
	{"ifl_cells.h", "ifl_run_lru("},
	{"ifl_scan.h", "ifl_run_scan("},
	{"ifl_recurrence.h", "ifl_run_recurrence("},
	{"ifl_heads.h", "ifl_row_join_heads("},
	{"ifl_heads.h", "ifl_row_head_cols("},
	{"ifl_heads.h", "ifl_row_sinusoid("},
	{"ifl_heads.h", "ifl_row_unfold("},
	{"ifl_heads.h", "ifl_row_position_scale("},
	{"ifl_moe.h", "ifl_row_route("},
	{"ifl_moe.h", "ifl_row_sparsemixer("},
	{"ifl_moe.h", "ifl_run_experts("},
	{"ifl_select.h", "ifl_row_select_"},
	{"ifl_pooling.h", "ifl_run_pooling("},
	{"ifl_streams.h", "ifl_row_stream_weights("},
	{"ifl_streams.h", "ifl_row_mix_streams("},
	{"ifl_streams.h", "ifl_row_merge_attention("},
	{"ifl_pack.h", "ifl_pack_"},
	{"ifl_rows.h", "ifl_row_"},
	{"ifl_rows.h", "ifl_rope_table"},
	{"ifl_rows.h", "INFINITY"},
}

// includes returns the headers that the regions need.
func (e *emitter) includes() []string {
	list := append([]string{"ifl_vec.h"}, e.headers...)
	if len(e.layout.States) > 0 {
		list = append(list, "ifl_kv.h")
	}
	text := e.regions.String()
	for _, h := range headerUses {
		if strings.Contains(text, h.use) {
			list = append(list, h.header)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// modelTables returns the tables of ifl_tables.h.
func (e *emitter) modelTables() (list []templates.Table) {
	add := func(ctype, name string, rows []string) {
		if len(rows) > 0 {
			list = append(list, templates.Table{Type: ctype, Name: name, Rows: rows})
		}
	}
	var graphs, buffers, states, acts []string
	for _, g := range e.layout.Graphs {
		graphs = append(graphs, "graph_"+layout.CName(g.Name))
	}
	for _, b := range e.layout.Buffers {
		rows := map[string]string{"tokens": "IFL_TOKENS", "out_rows": "IFL_OUT_ROWS", "sequences": "IFL_SEQS"}[b.Role]
		buffers = append(buffers, fmt.Sprintf("{%d, %s}", b.Cols, rows))
	}
	for _, s := range e.layout.States {
		size := func(n ctext.StateSize) string { return e.names.Size(s, n) }
		states = append(states, fmt.Sprintf("{%d, %s, %s, %s, %s, %d}", s.Count, size(ctext.PageBytes), size(ctext.KVHeads), size(ctext.KeyDim), size(ctext.ValueDim), s.ElementBytes()))
	}
	for act, k := range e.acts {
		acts = append(acts, fmt.Sprintf("{%s, %d}", actKind(act), k))
	}
	slices.Sort(acts)
	add("ifl_graph", "ifl_graphs", graphs)
	add("ifl_buffer", "ifl_buffers", buffers)
	add("ifl_state", "ifl_states", states)
	add("ifl_fixed", "ifl_fixed_states", e.fixedStates())
	add("ifl_lookup", "ifl_lookups", e.lookups())
	add("ifl_act", "ifl_acts", acts)
	add("ifl_mixture", "ifl_mixtures", e.need.mixtures)
	return list
}

func (e *emitter) lookups() (rows []string) {
	for _, g := range e.layout.Graphs {
		for _, l := range g.Lookups {
			rows = append(rows, fmt.Sprintf("{%d, offsetof(ifl_step, %s), %d}", g.Entry, l.Field, l.Below))
		}
	}
	return rows
}
