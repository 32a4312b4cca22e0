package pack

import (
	"github.com/iflowc/iflowc/ir/tensor"
)

// Rounding holds sums over rows of a matrix. A square of column c counts by the importance
// of the column, or by 1 without a calibration.
type Rounding struct {
	Squares float64   // Σ w²
	Flat    float64   // Σ m, where m is the mean of w² in the block of 32 columns of a row
	Errors  []float64 // Σ (w − w')² of each type, where w' is the rounded weight
}

// MeasureRounding rounds some rows of a transform's result, spread over all of them, to each of
// the types, and adds the squares to sums.
func MeasureRounding(src Source, t *tensor.Transform, index []int, types []tensor.DType, rows int, sums *Rounding) error {
	return guardFaults(src.Set, func() error {
		d, err := Eval(src, t, index)
		if err != nil {
			return err
		}
		h := (&evaluator{src: src, index: index}).importanceOf(t, d.Cols)
		exact := value{dt: d.DType, rows: d.Rows, cols: d.Cols, inner: 1, rank: 2, row: d.row}
		var s scratch
		for i := range rows {
			s.reset()
			r := i * d.Rows / rows
			x := decodeRow(d.DType, d.Cols, d.row(r, &s), &s)
			sums.addRow(x, h)
			for k, dt := range types {
				y := decodeRow(dt, d.Cols, exact.quantize(dt, h).row(r, &s), &s)
				for c := range x {
					diff := float64(x[c]) - float64(y[c])
					sums.Errors[k] += weightOf(h, c) * diff * diff
				}
			}
		}
		return nil
	})
}

// roundingBlock is the number of columns of a block whose mean square counts in Flat.
const roundingBlock = 32

func (s *Rounding) addRow(x, h []float32) {
	for from := 0; from < len(x); from += roundingBlock {
		block := x[from:min(len(x), from+roundingBlock)]
		mean := 0.0
		for i, v := range block {
			square := float64(v) * float64(v)
			mean += square / float64(len(block))
			s.Squares += weightOf(h, from+i) * square
		}
		for i := range block {
			s.Flat += weightOf(h, from+i) * mean
		}
	}
}

func weightOf(h []float32, c int) float64 {
	if h == nil {
		return 1
	}
	return float64(h[c])
}
