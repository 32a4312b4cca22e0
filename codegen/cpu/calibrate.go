package cpu

import (
	"fmt"
	"strconv"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/calibration"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// calibrationSums counts the sums that a model computes during calibration. Otherwise
// calibration costs one branch per row.
type calibrationSums struct {
	sums     int64 // per thread: squares of columns, and histograms of rows by largest score
	hessians int64 // floats of the Hessians, shared by all threads
	row      int   // floats per token of a matmul's input
}

// calibrate emits code that takes down row r of the matmul's input. It returns the code
// that adds all rows to the statistics once they are packed.
func (m *matmul) calibrate(row string) (add string) {
	c, k := &m.e.calib, m.Weight.K
	element, layers := "", 1 // index of the sums
	if index, array, err := m.Weight.Index(m.Arg, m.region.Loop); err != nil || array && index.Constant() {
		return "" // a single element of an array
	} else if array {
		element, layers = ctext.Index(index), m.Weight.Layers.Len()
	}
	width := hessianSquare(k)
	parts := (k + width - 1) / width
	m.entry.Weight, m.entry.Calib = m.Weight.Name, c.sums
	m.entry.Hessians, m.entry.Square = c.hessians, width
	size := int64(parts * calibration.SquareLen(width))
	sums, hessian := offset(c.sums, element, m.Weight.Lo, int64(k+1)), offset(c.hessians, element, m.Weight.Lo, size)
	c.sums += int64(layers) * int64(k+1)
	c.hessians += int64(layers) * size
	c.row = max(c.row, m.Slices*parts*width)
	m.w.P("ifl_calib_row(c, &p, tid, %s, i * p.tile + m, %s, K, %d);", sums, row, parts*width)
	return fmt.Sprintf("ifl_calib_rows(c, &p, tid, %s, K, %s, %d, %d);", sums, hessian, parts*width, width)
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
