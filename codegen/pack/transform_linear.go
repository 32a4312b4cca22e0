package pack

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
)

// decoded returns all rows of a value.
func (v value) decoded() [][]float32 {
	var s scratch
	out := make([][]float32, v.rows)
	for r := range out {
		s.reset()
		out[r] = append([]float32(nil), decodeRow(v.dt, v.cols, v.row(r, &s), &s)...)
	}
	return out
}

// vector returns the elements of a vector, whose rows are its elements.
func (v value) vector() []float32 {
	var out []float32
	for _, row := range v.decoded() {
		out = append(out, row...)
	}
	return out
}

func fromFloats(rows [][]float32) value {
	cols := len(rows[0])
	var all []float32
	for _, row := range rows {
		all = append(all, row...)
	}
	return fromRaw(tensor.F32, len(rows), cols, 2, encodeFloats(all, &scratch{}))
}

// evalLinear returns a·wᵀ, plus the bias of the third operand if there is one. Sums are in
// float64.
func evalLinear(_ *tensor.Transform, args []value, _ []int) (value, error) {
	if len(args) < 2 || len(args) > 3 || args[0].rank != 2 || args[1].rank != 2 || args[0].cols != args[1].cols || len(args) == 3 && args[2].rows != args[1].rows {
		return value{}, fmt.Errorf("operands that do not fit: want [n, k], [m, k] and, optionally, [m]")
	}
	a, w, bias := args[0].decoded(), args[1].decoded(), make([]float32, args[1].rows)
	if len(args) == 3 {
		bias = args[2].vector()
	}
	out := make([][]float32, len(a))
	for i, x := range a {
		out[i] = make([]float32, len(w))
		for j, y := range w {
			sum := float64(bias[j])
			for k, v := range x {
				sum += float64(v) * float64(y[k])
			}
			out[i][j] = float32(sum)
		}
	}
	return fromFloats(out), nil
}

// evalLayerNorm returns the layer norm of each row, with a weight and a bias.
func evalLayerNorm(r *tensor.Transform, args []value, _ []int) (value, error) {
	if args[0].rank != 2 || args[1].rows != args[0].cols || args[2].rows != args[0].cols {
		return value{}, fmt.Errorf("operands that do not fit: want [n, k], [k] and [k]")
	}
	rows, w, b := args[0].decoded(), args[1].vector(), args[2].vector()
	for _, x := range rows {
		mean, square := 0.0, 0.0
		for _, v := range x {
			mean += float64(v) / float64(len(x))
		}
		for _, v := range x {
			square += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
		}
		by := 1 / math.Sqrt(square+r.Nums[0])
		for i, v := range x {
			x[i] = float32((float64(v)-mean)*by*float64(w[i]) + float64(b[i]))
		}
	}
	return fromFloats(rows), nil
}
