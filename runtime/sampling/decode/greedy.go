package decode

import "math"

// argmax returns the index of the largest logit, the first among equals, or false if a
// logit is NaN or all are minus infinity. It is on the critical path of every step.
// Groups of eight without a larger logit are skipped with one comparison each, about a
// cycle per logit; a NaN fails the comparison, so its group is scanned.
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
