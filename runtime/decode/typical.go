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
		entropy := 0.0
		for _, c := range pool {
			if c.p > 0 {
				entropy -= c.p * math.Log(c.p)
			}
		}
		order := make([]int, len(pool))
		for i := range order {
			order[i] = i
		}
		distance := func(i int) float64 { return math.Abs(-math.Log(pool[i].p) - entropy) }
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(distance(a), distance(b)) })
		kept := make([]candidate, len(order))
		for i, at := range order {
			kept[i] = pool[at]
		}
		chosen := kept[drawIndex(head(kept, p["p"], len(kept)), rng)].id
		return slices.IndexFunc(pool, func(c candidate) bool { return c.id == chosen })
	}
}
