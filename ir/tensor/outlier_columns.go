package tensor

import "math"

// OutlierGroup is the number of neighboring columns that are taken out
// together: what one dot product of bytes covers.
const OutlierGroup = 4

// OutlierColumns are a group of columns of a row whose largest part is stored
// beside the row's blocks: Scale·Codes[i] belongs to column OutlierGroup·Group + i.
type OutlierColumns struct {
	Group int
	Scale float32
	Codes [OutlierGroup]int8
}

// TakeOutlierColumns does n times: of the group with the largest magnitude, the first
// of equals, it takes the part that eight bits of its own hold, scale =
// absmax/127 and codes = round-to-even(x · (127/absmax)), and leaves the
// remainder in x. All in float32 and in this order, so that a kernel can give
// the same bits. One column that is many times as large as its neighbors would
// else take the range of its whole block (Dettmers et al. 2022, §3, multiply
// such columns apart for the same reason). Groups of zeros, and those whose
// 127/absmax is not finite, are left as they are with codes 0.
//
// len(x) is whole groups. Values are finite; n is at least 0.
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
