package decode

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// pickTypical draws from the candidates whose information is nearest to the
// pool's entropy, as few as hold p of the probability (Meister et al. 2023,
// Locally Typical Sampling, equation 9).
func pickTypical(p params, rng *rand.Rand) picker {
	return func(pool []candidate, _ []int32) int {
		chosen := weighted(typical(slices.Clone(pool), p["p"]), rng)
		return slices.IndexFunc(pool, func(c candidate) bool { return c.id == chosen })
	}
}

// typical keeps the candidates nearest to the entropy that hold a share of the
// probability, nearest first, among equals the likelier.
func typical(c []candidate, share float64) []candidate {
	entropy := 0.0
	for _, x := range c {
		if x.p > 0 {
			entropy -= x.p * math.Log(x.p)
		}
	}
	distance := func(x candidate) float64 { return math.Abs(-math.Log(x.p) - entropy) }
	slices.SortFunc(c, func(a, b candidate) int {
		if d := cmp.Compare(distance(a), distance(b)); d != 0 {
			return d
		}
		return order(a, b)
	})
	return head(c, share, len(c))
}
