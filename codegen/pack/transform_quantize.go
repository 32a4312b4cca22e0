package pack

import (
	"fmt"

	"github.com/iflowc/iflowc/ir/tensor"
)

// quantize evaluates quantize(a, type).
func (e *evaluator) quantize(r *tensor.Transform) (value, error) {
	if !tensor.CanEncode(r.Type) || r.Type.IsActivation() {
		return value{}, fmt.Errorf("weights cannot be quantized to %s", r.Type)
	}
	v, err := e.evalTo(r.Args[0], r.Type)
	if err != nil {
		return value{}, err
	}
	if v.rank < 2 && r.Type.IsBlock() {
		v = v.asRow()
		v.rank = 2
	}
	return e.quantizeBy(v, r.Type, r)
}

// quantizeBy transcodes a value with the calibration of r's sources.
func (e *evaluator) quantizeBy(v value, dt tensor.DType, r *tensor.Transform) (value, error) {
	if v.dt == dt {
		return v, nil
	}
	if v.outliers != nil {
		return value{}, fmt.Errorf("transform %s: %s with sparse outliers cannot become %s", r, v.dt, dt)
	}
	if dt.IsBlock() && v.cols%dt.Block() == 0 && !tensor.Lossless(dt, v.dt) {
		f, err := e.feedbackOf(r, v.cols)
		if err != nil {
			return value{}, err
		}
		if f != nil {
			return v.quantizeFed(dt, f), nil
		}
	}
	return v.quantize(dt, e.importanceOf(r, v.cols)), nil
}

// quantizeFed transcodes each row with GPTQ error compensation between its columns.
func (v value) quantizeFed(dt tensor.DType, f *tensor.Feedback) value {
	row, st, cols := v.row, v.dt, v.cols
	size := rowBytes(dt, cols)
	return value{dt: dt, rows: v.rows, cols: cols, inner: v.inner, rank: v.rank, row: func(r int, s *scratch) []byte {
		x := s.floats(cols)
		copy(x, decodeRow(st, cols, row(r, s), s))
		out := s.bytes(size)
		if err := tensor.EncodeFeedback(out, dt, x, f); err != nil {
			panic("bug: " + err.Error())
		}
		return out
	}}
}

// quantize transcodes each row, weighted by the importance of its columns, unless the
// type represents the stored values exactly. A partial last block is padded with the
// row's last value, which does not change the block's range.
func (v value) quantize(dt tensor.DType, importance []float32) value {
	if v.dt == dt {
		return v
	}
	row, st, cols := v.row, v.dt, v.cols
	size := rowBytes(dt, cols)
	direct := cols%dt.Block() == 0 && cols%st.Block() == 0
	weighted := importance != nil && dt.IsBlock() && cols%dt.Block() == 0 && !tensor.Lossless(dt, st)
	return value{dt: dt, rows: v.rows, cols: cols, inner: v.inner, rank: v.rank, row: func(r int, s *scratch) []byte {
		in, out := row(r, s), s.bytes(size)
		var err error
		if weighted {
			err = tensor.EncodeWeighted(out, dt, decodeRow(st, cols, in, s), importance)
		} else if direct {
			err = tensor.Transcode(out, dt, in, st)
		} else {
			x := decodeRow(st, cols, in, s)
			padded := s.floats(size / dt.BlockBytes() * dt.Block())
			copy(padded, x)
			for i := cols; i < len(padded); i++ {
				padded[i] = x[cols-1]
			}
			err = tensor.Encode(out, dt, padded)
		}
		if err != nil {
			panic("bug: " + err.Error())
		}
		return out
	}}
}
