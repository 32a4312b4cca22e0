package decode

import (
	"math"
	"math/rand/v2"
	"sort"
)

// pickTypical implements locally typical sampling (Meister et al. 2023, equation 9): it
// samples from the fewest candidates with information nearest to the pool's entropy
// that hold p of the probability.
func pickTypical(p params, rng *rand.Rand) picker {
	return func(pool []candidate, _ []int32) int {
		from, to := typicalRange(pool, p["p"])
		return from + drawIndex(pool[from:to], rng)
	}
}

// typical keeps the candidates with information nearest to the entropy that hold share
// of the probability.
func typical(c []candidate, share float64) []candidate {
	front(c, len(c))
	from, to := typicalRange(c, share)
	return c[from:to]
}

// typicalRange returns the range of the typical candidates among sorted ones. They are
// contiguous, because the distance to the entropy falls and then rises. Of two equal
// distances, the more probable candidate comes first.
func typicalRange(c []candidate, share float64) (from, to int) {
	entropy := 0.0
	for _, x := range c {
		if x.p > 0 {
			entropy -= x.p * math.Log(x.p)
		}
	}
	distance := func(i int) float64 {
		if i < 0 || i >= len(c) {
			return 0
		}
		return math.Abs(-math.Log(c[i].p) - entropy)
	}
	to = sort.Search(len(c), func(i int) bool { return -math.Log(c[i].p) >= entropy })
	from = to
	before, behind := distance(from-1), distance(to)
	for sum := 0.0; sum < share && (from > 0 || to < len(c)) || from == to; {
		if from > 0 && (to == len(c) || before <= behind) {
			from--
			sum += c[from].p
			before = distance(from - 1)
		} else {
			sum += c[to].p
			to++
			behind = distance(to)
		}
	}
	return from, to
}
