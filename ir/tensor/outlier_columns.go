package tensor

import "math"

// OutlierGroup is the number of adjacent columns in an outlier group: the width of one
// dot product of bytes.
const OutlierGroup = 4

// An OutlierColumns is an outlier group of a row, stored besides the row's blocks:
// Scale·Codes[i] belongs to column OutlierGroup·Group + i.
type OutlierColumns struct {
	Group int
	Scale float32
	Codes [OutlierGroup]int8
}

// TakeOutlierColumns quantizes the n groups with the largest magnitudes separately. It
// repeats n times: it selects the group with the largest magnitude (the first one for
// ties), quantizes it to eight bits with scale = absmax/127 and codes =
// round-to-even(x · (127/absmax)), and leaves the remainder in x. It computes in float32
// in this order, so that kernels can return the same bits. Otherwise one outlier column
// would determine the range of its whole block (Dettmers et al. 2022, §3). Groups of
// zeros, and groups with a 127/absmax that is not finite, are unchanged and have codes 0.
//
// len(x) is a multiple of OutlierGroup. Values must be finite and n at least 0.
func TakeOutlierColumns(x []float32, n int) []OutlierColumns {
	out := make([]OutlierColumns, n)
	for i := range out {
		top := float32(0)
		for c, v := range x {
			if a := float32(math.Abs(float64(v))); a > top {
				top, out[i].Group = a, c/OutlierGroup
			}
		}
		inv := float32(0)
		if v := 127 / top; top > 0 && v <= math.MaxFloat32 {
			inv = v
		}
		out[i].Scale = top / 127
		group := x[out[i].Group*OutlierGroup:][:OutlierGroup]
		for c, v := range group {
			q := float32(math.RoundToEven(float64(float32(v * inv))))
			out[i].Codes[c] = int8(q)
			group[c] = v - float32(out[i].Scale*q)
		}
	}
	return out
}
