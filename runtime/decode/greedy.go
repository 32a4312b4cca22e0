package decode

import "math"

// argmax is the index of the largest logit, the first of equals; false when
// one is NaN or none is above minus infinity.
func argmax(logits []float32) (int, bool) {
	best, nan := 0, false
	for i, l := range logits {
		if l != l {
			nan = true
		}
		if l > logits[best] {
			best = i
		}
	}
	return best, !nan && logits[best] >= -math.MaxFloat32
}
