package ops

import (
	"math"
)

// sparseMixerRow replaces the logits of one row by the weights of two experts
// (SparseMixer-v2, Liu et al. 2024, arXiv:2409.12136, as in Phi-3.5-MoE). Each expert is
// the one with the greatest remaining logit. Its weight is its softmax over the remaining
// logits near it. A logit is near if its distance is less than 2·jitter, relative to the
// maximum of its own magnitude and the best logit.
func sparseMixerRow(x []float64, jitter float64) {
	weights := map[int]float64{}
	for range 2 {
		best := -1
		for i, v := range x {
			if _, taken := weights[i]; !taken && (best < 0 || v > x[best]) {
				best = i
			}
		}
		sum := 0.0
		for i, v := range x {
			_, taken := weights[i]
			if !taken && !((x[best]-v)/math.Max(math.Abs(v), x[best]) > 2*jitter) {
				sum += math.Exp(v - x[best])
			}
		}
		weights[best] = 1 / sum
	}
	for i := range x {
		x[i] = weights[i]
	}
}
