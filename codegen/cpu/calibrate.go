package cpu

import (
	"fmt"
	"strconv"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// calibration counts the sums that a model computes during calibration. Otherwise
// calibration costs one branch per row.
type calibration struct {
	sums     int64 // per thread: squares of columns, and histograms of rows by largest score
	hessians int64 // elements of the Hessians, shared by all threads
	row      int   // floats per row of their inputs
}

// calibrate emits code that adds the squares of a row by column. It returns the code
// that updates the Hessian once all rows are packed; it skips steps with few rows.
func (m *matmul) calibrate(row string) (hessians string) {
	c, k := &m.e.calib, m.Weight.K
	element, layers := "", 1 // index of the sums
	if index, array, err := m.Weight.Index(m.Arg, m.region.Loop); err != nil || array && index.Constant() {
		return "" // a single element of an array
	} else if array {
		element, layers = ctext.Index(index), m.Weight.Layers.Len()
	}
	m.entry.Weight, m.entry.Calib = m.Weight.Name, c.sums
	sums := offset(c.sums, element, m.Weight.Lo, int64(k+1))
	c.sums += int64(layers) * int64(k+1)
	if m.Slices > 1 { // the matmul has more rows than tokens
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

// offset returns the C expression of the offset of an element's sums; "" is the only element.
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

// mostSquare is the maximum width of a diagonal block of the Hessian. Memory and the
// time of the Cholesky factorization grow with it.
const mostSquare = 768

// hessianSquare returns the width of the equal diagonal blocks of the Hessian of k
// columns: a multiple of the block size of every type.
func hessianSquare(k int) int {
	parts := (k + mostSquare - 1) / mostSquare
	return ((k+parts-1)/parts + 63) / 64 * 64
}

// scores returns the C expression of the histogram of an attention's rows by largest
// score, one per layer.
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
