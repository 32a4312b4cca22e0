package cpu

import (
	"fmt"
	"strconv"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// calibration counts what a thread, and all threads together, add up while a
// model is calibrated. It costs a branch a row where nobody calibrates.
type calibration struct {
	sums     int64 // of a thread: squares of columns, and rows by their largest score
	hessians int64 // products of columns
	row      int   // floats of one of the rows that they are made of
}

// calibrate emits what adds up the squares of a row by column. The result is
// what adds up products of columns, when all rows are there; few rows are left
// out.
func (m *matmul) calibrate(row string) (hessians string) {
	c, k := &m.e.calib, m.Weight.K
	element, layers := "", 1 // what the sums are indexed by
	if index, array, err := m.Weight.Index(m.Arg, m.region.Loop); err != nil || array && index.Constant() {
		return "" // one element of many by itself
	} else if array {
		element, layers = ctext.Index(index), m.Weight.Layers.Len()
	}
	m.entry.Weight, m.entry.Calib = m.Weight.Name, c.sums
	sums := offset(c.sums, element, m.Weight.Lo, int64(k+1))
	c.sums += int64(layers) * int64(k+1)
	if m.Slices > 1 { // more rows than tokens
		m.w.P("ifl_calib_squares(c, &p, tid, %s, %s, K);", sums, row)
		return ""
	}
	m.w.P("ifl_calib_row(c, &p, tid, %s, t, %s, K);", sums, row)
	width := hessianSquare(k)
	parts := (k + width - 1) / width
	m.entry.Hessians, m.entry.Square = c.hessians, width
	at := offset(c.hessians, element, m.Weight.Lo, int64(parts*width*width))
	c.hessians += int64(layers) * int64(parts*width*width)
	c.row = max(c.row, parts*width)
	return fmt.Sprintf("ifl_calib_products(c, &p, tid, %s, K, %d);", at, width)
}

// offset is where the sums of an element are, in C; "" stands for the only one.
func offset(at int64, element string, lo int, stride int64) string {
	first := strconv.FormatInt(at, 10)
	if element == "" {
		return first
	}
	if element != ctext.LayerIndex {
		element = "(" + element + ")"
	}
	return ctext.Plus(first, ctext.Times(ctext.Minus(element, lo), stride))
}

// mostSquare bounds the squares of columns between which calibration keeps
// products: memory and the time to factor them grow with it.
const mostSquare = 768

// hessianSquare divides k columns into squares of equal width, whole blocks of
// any type.
func hessianSquare(k int) int {
	parts := (k + mostSquare - 1) / mostSquare
	return ((k+parts-1)/parts + 63) / 64 * 64
}

// scores is where calibration counts the rows of an attention by their largest
// score: for each layer by itself.
func (e *emitter) scores(r *layout.Region) string {
	c, layers := &e.calib, r.Loop.Layers()
	at := strconv.FormatInt(c.sums, 10)
	if r.Loop != nil {
		at = offset(c.sums, ctext.LayerIndex, r.Loop.Lo, manifest.ScoreBins)
	}
	e.out.Manifest.Scores = append(e.out.Manifest.Scores, manifest.Scores{Calib: c.sums, Layers: layers})
	c.sums += int64(layers) * manifest.ScoreBins
	return fmt.Sprintf("c->calib ? c->calib + tid * IFL_CALIB_SUMS + %s : NULL", at)
}
