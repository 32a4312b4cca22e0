package templates

import (
	"math"
	"math/bits"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// stored is what the state keeps of x, rows of n numbers.
func stored(x []float32, n int, dt tensor.DType) []float64 {
	if dt.IsBlock() {
		return storedBlocks(x, n, dt)
	}
	out := make([]float64, len(x))
	for i, f := range x {
		switch dt {
		case tensor.F16:
			f = tensor.F16ToF32(tensor.F32ToF16(f))
		case tensor.BF16:
			f = tensor.BF16ToF32(tensor.F32ToBF16(f))
		}
		out[i] = float64(f)
	}
	return out
}

// storedBlocks is x after rounding to a block type with rows of n numbers.
func storedBlocks(x []float32, n int, dt tensor.DType) []float64 {
	var out []float64
	for row := range slices.Chunk(x, n) {
		if dt == tensor.Q5RB32T2 {
			row = slices.Clone(row)
			tensor.Rotate(row)
		}
		at := len(out)
		for block := range slices.Chunk(row, 32) {
			var top float32
			for _, f := range block {
				if a, most := max(f, -f), max(top, -top); a > most || a == most && f < top {
					top = f
				}
			}
			low, high, code := float32(-127), float32(127), max(top, -top)/127
			switch dt {
			case tensor.Q5RB32T2:
				low, high, code = -16, 15, top/-16
			case tensor.Q4B32T2:
				low, high, code = -8, 7, top/-8
			}
			scale := tensor.F16ToF32(tensor.F32ToF16(code))
			inv := 1 / scale
			for _, f := range block {
				out = append(out, float64(scale)*max(float64(low), min(float64(high), math.RoundToEven(float64(f*inv)))))
			}
		}
		if dt == tensor.Q5RB32T2 {
			rotateBack(out[at:])
		}
	}
	return out
}

// rotateBack is tensor.Rotate in float64.
func rotateBack(x []float64) {
	n := min(len(x)&-len(x), 256)
	for s := range slices.Chunk(x, n) {
		y := slices.Clone(s)
		for i := range s {
			s[i] = 0
			for j, f := range y {
				if bits.OnesCount(uint(i&j))%2 == 1 {
					f = -f
				}
				s[i] += f / math.Sqrt(float64(n))
			}
		}
	}
}
