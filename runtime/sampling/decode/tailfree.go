package decode

import (
	"math"
	"math/rand/v2"
)

// pickTailFree implements tail-free sampling (Phénix and Egan 2019): it samples from
// the candidates before the tail, which begins where the normalized absolute second
// derivatives of the sorted probabilities sum to more than z.
func pickTailFree(p params, rng *rand.Rand) picker {
	return func(pool []candidate, _ []int32) int { return drawIndex(pool[:beforeTail(pool, p["z"])], rng) }
}

// beforeTail returns the number of candidates before the tail, at least 1.
func beforeTail(pool []candidate, z float64) int {
	n := len(pool)
	if n < 3 {
		return n
	}
	bend := func(i int) float64 { return math.Abs((pool[i].p - pool[i+1].p) - (pool[i+1].p - pool[i+2].p)) }
	total := 0.0
	for i := range n - 2 {
		total += bend(i)
	}
	if total == 0 {
		return n
	}
	sum := 0.0
	for i := range n - 2 {
		if sum += bend(i) / total; sum > z {
			return max(i, 1)
		}
	}
	return n
}
