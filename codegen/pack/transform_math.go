package pack

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
)

func evalScale(r *tensor.Transform, args []value, _ []int) (value, error) {
	by := float32(r.Nums[0])
	return args[0].mapFloats(func(x []float32) {
		for i := range x {
			x[i] *= by
		}
	}), nil
}

func evalAdd(r *tensor.Transform, args []value, _ []int) (value, error) {
	by := float32(r.Nums[0])
	return args[0].mapFloats(func(x []float32) {
		for i := range x {
			x[i] += by
		}
	}), nil
}

func evalSoftplus(_ *tensor.Transform, args []value, _ []int) (value, error) {
	return args[0].mapFloats(func(x []float32) {
		for i, v := range x {
			x[i] = float32(tensor.Softplus(float64(v)))
		}
	}), nil
}

func evalExp(_ *tensor.Transform, args []value, _ []int) (value, error) {
	return args[0].mapFloats(func(x []float32) {
		for i, v := range x {
			x[i] = float32(math.Exp(float64(v)))
		}
	}), nil
}

func evalSub(_ *tensor.Transform, args []value, _ []int) (value, error) {
	a, b := args[0], args[1]
	if a.rows != b.rows || a.cols != b.cols || a.rank != b.rank {
		return value{}, fmt.Errorf("operands of %d by %d and of %d by %d elements", a.rows, a.cols, b.rows, b.cols)
	}
	return value{dt: tensor.F32, rows: a.rows, cols: a.cols, inner: a.inner, rank: a.rank, row: func(r int, s *scratch) []byte {
		x, y := decodeRow(a.dt, a.cols, a.row(r, s), s), decodeRow(b.dt, b.cols, b.row(r, s), s)
		for i := range x {
			x[i] -= y[i]
		}
		return encodeFloats(x, s)
	}}, nil
}

// evalDot adds in float64, so that the order of the elements does not matter.
func evalDot(_ *tensor.Transform, args []value, _ []int) (value, error) {
	if args[0].rank > 1 || args[1].rank > 1 || args[0].rows != args[1].rows {
		return value{}, fmt.Errorf("operands of %d by %d and of %d by %d elements; want two vectors of one length", args[0].rows, args[0].cols, args[1].rows, args[1].cols)
	}
	var s scratch
	sum := 0.0
	for r := range args[0].rows {
		s.reset()
		x, y := decodeRow(args[0].dt, 1, args[0].row(r, &s), &s), decodeRow(args[1].dt, 1, args[1].row(r, &s), &s)
		sum += float64(x[0]) * float64(y[0])
	}
	return fromRaw(tensor.F32, 1, 1, 1, encodeFloats([]float32{float32(sum)}, &scratch{})), nil
}

// encodeFloats returns the bytes of float32 values.
func encodeFloats(x []float32, s *scratch) []byte {
	out := s.bytes(4 * len(x))
	if err := tensor.Encode(out, tensor.F32, x); err != nil {
		panic("bug: " + err.Error())
	}
	return out
}
