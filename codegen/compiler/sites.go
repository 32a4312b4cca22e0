package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/spec"
)

// addSites describes in a program's manifest which stored matrices adapters change. whole is
// the module of all ranks.
func (m *Model) addSites(p *codegen.CPUModel, whole *ir.Module) error {
	w := siteWriter{stored: m.storedMatrix, aliases: m.AdapterNames(), embeddings: embeddings(whole), orders: map[string]int{}}
	for _, s := range p.Sites {
		if err := w.add(s); err != nil {
			return fmt.Errorf("adapters of %s%v: %w", s.Weight, s.Index, err)
		}
	}
	p.Manifest.Sites, p.Manifest.RowOrders = w.sites, w.list
	return nil
}

// storedMatrix returns the rows and columns of a stored matrix.
func (m *Model) storedMatrix(name string) (rows, cols int, err error) {
	info, ok := m.set.Lookup(name)
	if !ok || len(info.Shape) != 2 {
		return 0, 0, fmt.Errorf("bug: %s is not a stored matrix", name)
	}
	return info.Shape[0], info.Shape[1], nil
}

// A siteWriter makes the sites of a manifest.
type siteWriter struct {
	stored     func(name string) (rows, cols int, err error)
	aliases    map[string][]spec.Alias
	embeddings map[string]bool // stored matrices that are lookup tables of tokens
	sites      []manifest.Site
	list       [][]manifest.RowRun
	orders     map[string]int // index in list by text
}

func (w *siteWriter) add(s layout.Site) error {
	rows, err := w.rowsOf(s.Transform, s.Index)
	if err != nil {
		return err
	}
	if len(rows) < s.Rows {
		return fmt.Errorf("bug: %d of %d rows", len(rows), s.Rows)
	}
	site := manifest.Site{Weight: s.Weight, Index: s.Index, Rows: s.Rows, Cols: s.Cols}
	pairs := map[storedMatrix][]rowPair{}
	var matrices []storedMatrix
	for to, r := range rows[:s.Rows] {
		if r.of == nil { // padding
			continue
		}
		of := *r.of
		if pairs[of] == nil {
			matrices = append(matrices, of)
		}
		pairs[of] = append(pairs[of], rowPair{to, r.row})
	}
	for _, of := range matrices {
		part := manifest.SitePart{Out: of.out, In: of.in, FromCol: of.fromCol, Scale: of.scale}
		part.Names = w.names(of, pairs[of])
		site.Parts = append(site.Parts, part)
	}
	w.sites = append(w.sites, site)
	return nil
}

// tiedHeads are the names of output heads that are also the token embedding, in transformers'
// models and in GGUF files.
var tiedHeads = []string{"lm_head", "output", "cls.predictions.decoder", "lm_head.decoder", "vocab_projector"}

// embeddings returns the stored matrices that a module looks tokens up in; some are heads too.
func embeddings(mod *ir.Module) map[string]bool {
	out := map[string]bool{}
	for _, g := range mod.Graphs {
		for _, op := range g.FindOps("embed") {
			for _, file := range op.Args[1].Transform.Sources() {
				out[file] = true
			}
		}
	}
	return out
}

// A rowPair is a row of a site and of a stored matrix.
type rowPair struct{ to, from int }

// names returns the names of a matrix in its own file and in files of other formats.
func (w *siteWriter) names(of storedMatrix, pairs []rowPair) (out []manifest.SiteName) {
	if w.embeddings[of.name] { // that name is of a lookup, which is no matrix product
		for _, head := range tiedHeads {
			out = append(out, manifest.SiteName{Name: head, Order: w.order(pairs)})
		}
		return out
	}
	out = []manifest.SiteName{{Name: strings.TrimSuffix(of.name, ".weight"), Order: w.order(pairs)}}
	for _, a := range w.aliases[of.name] {
		other := slices.Clone(pairs)
		for i := range other {
			other[i].from = a.Row(other[i].from, of.out)
		}
		out = append(out, manifest.SiteName{Name: a.Name, Order: w.order(other)})
	}
	return out
}

// order returns the index of an order of rows.
func (w *siteWriter) order(pairs []rowPair) int {
	runs := runsOf(pairs)
	byFrom := slices.SortedFunc(slices.Values(pairs), func(a, b rowPair) int { return cmp.Compare(a.from, b.from) })
	if other := runsOf(byFrom); len(other) < len(runs) { // halves of heads from neighbors
		runs = other
	}
	text := fmt.Sprint(runs)
	at, ok := w.orders[text]
	if !ok {
		at = len(w.list)
		w.orders[text], w.list = at, append(w.list, runs)
	}
	return at
}

func runsOf(pairs []rowPair) (runs []manifest.RowRun) {
	for _, p := range pairs {
		runs = extended(runs, p.to, p.from)
	}
	return runs
}

// extended adds row from as row to, in the last run if it continues it.
func extended(runs []manifest.RowRun, to, from int) []manifest.RowRun {
	if n := len(runs); n > 0 {
		r := &runs[n-1]
		dt, df := to-r.To-(r.Count-1)*r.ToStep, from-r.From-(r.Count-1)*r.FromStep
		if r.Count == 1 || dt == r.ToStep && df == r.FromStep {
			r.ToStep, r.FromStep, r.Count = dt, df, r.Count+1
			return runs
		}
	}
	return append(runs, manifest.RowRun{To: to, ToStep: 1, From: from, FromStep: 1, Count: 1})
}

// A storedMatrix is a stored matrix, or a range of its columns, as a transform reads it.
type storedMatrix struct {
	name    string
	out, in int // of the layer; transposed if the file has inputs by outputs
	fromCol int
	scale   float64 // 0: 1
	whole   bool    // not yet selected from: may be transposed
}

// A storedRow is a row of a stored matrix; of a row of zeros, of is nil.
type storedRow struct {
	of  *storedMatrix
	row int
}

// rowsOf returns the stored row that each row of a transform's value is. The transform
// only selects, orders and scales rows and columns: see the pass add-adapters.
func (w *siteWriter) rowsOf(r *tensor.Transform, index []int) ([]storedRow, error) {
	if r.Op == "source" {
		name, err := tensor.SourceName(r.Name, index)
		if err != nil {
			return nil, err
		}
		out, in, err := w.stored(name)
		if err != nil {
			return nil, err
		}
		return rowsOfMatrix(&storedMatrix{name: name, out: out, in: in, whole: true}), nil
	}
	var in [][]storedRow
	for _, a := range r.Args {
		rows, err := w.rowsOf(a, index)
		if err != nil {
			return nil, err
		}
		in = append(in, rows)
	}
	x := in[0]
	num := func(i int) int { return int(r.Nums[i]) }
	picked := func(n int, from func(row int) int) []storedRow {
		out := make([]storedRow, n)
		for i := range out {
			out[i] = x[from(i)]
		}
		return out
	}
	switch r.Op {
	case "quantize", "quantize_sparse":
		return x, nil
	case "concat":
		return slices.Concat(in...), nil
	case "interleave":
		return interleaved(in), nil
	case "rows":
		return x[num(0):num(1)], nil
	case "cols":
		return changed(x, func(m *storedMatrix) { m.fromCol += num(0) }), nil
	case "scale":
		return changed(x, func(m *storedMatrix) { m.scale = r.Nums[0] * cmp.Or(m.scale, 1) }), nil
	case "permute_rows": // GGUF stores the rows of a head as (0, d/2, 1, d/2+1, …)
		d := len(x) / num(0)
		return picked(len(x), func(row int) int { return row/d*d + row%(d/2)*2 + row%d/(d/2) }), nil
	case "group_rows":
		take := num(3) - num(2)
		return picked(num(0)*take, func(row int) int { return row/take*num(1) + num(2) + row%take }), nil
	case "transpose":
		if len(x) > 0 && x[0].of.whole && len(x) == x[0].of.out {
			m := *x[0].of
			m.out, m.in, m.whole = m.in, m.out, false
			return rowsOfMatrix(&m), nil
		}
	}
	return nil, fmt.Errorf("bug: transform %s selects no rows", r)
}

func rowsOfMatrix(m *storedMatrix) []storedRow {
	rows := make([]storedRow, m.out)
	for i := range rows {
		rows[i] = storedRow{m, i}
	}
	return rows
}

// interleaved alternates panels of 16 rows of several matrices, each padded to whole panels.
func interleaved(in [][]storedRow) (out []storedRow) {
	for at := 0; at < len(in[0]); at += 16 {
		for _, x := range in {
			panel := make([]storedRow, 16)
			copy(panel, x[min(at, len(x)):])
			out = append(out, panel...)
		}
	}
	return out
}

// changed returns the rows of changed matrices.
func changed(rows []storedRow, change func(m *storedMatrix)) []storedRow {
	made := map[*storedMatrix]*storedMatrix{}
	out := slices.Clone(rows)
	for i, r := range out {
		if r.of == nil {
			continue
		}
		if made[r.of] == nil {
			m := *r.of
			m.whole = false
			change(&m)
			made[r.of] = &m
		}
		out[i].of = made[r.of]
	}
	return out
}
