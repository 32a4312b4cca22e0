package decode

import "math"

// argmax is the index of the largest logit, the first of equals; false when
// one is NaN or none is above minus infinity. Every sequence of a step waits
// for it, hence the groups of eight: nearly all hold nothing above the largest
// so far, and cost a cycle a logit. A NaN is not at most anything, so its group
// is looked through.
func argmax(logits []float32) (int, bool) {
	at, top := 0, float32(math.Inf(-1))
	x := logits
	for i := 0; len(x) >= 8; x, i = x[8:], i+8 {
		g := (*[8]float32)(x)
		if g[0] <= top && g[1] <= top && g[2] <= top && g[3] <= top && g[4] <= top && g[5] <= top && g[6] <= top && g[7] <= top {
			continue
		}
		for j, l := range g {
			if l != l {
				return 0, false
			}
			if l > top {
				at, top = i+j, l
			}
		}
	}
	for j, l := range x {
		if l != l {
			return 0, false
		}
		if l > top {
			at, top = len(logits)-len(x)+j, l
		}
	}
	return at, top >= -math.MaxFloat32
}
