package decode

import "math/rand/v2"

// pickStd implements sample.std and top_k: top-p sampling from at most max_k
// candidates. top_k has no top_p.
func pickStd(p params, rng *rand.Rand) picker {
	share, ok := p["top_p"]
	if !ok {
		share = 1
	}
	return func(pool []candidate, _ []int32) int {
		return drawIndex(head(pool, share, p.whole("max_k")), rng)
	}
}

// head returns the first candidates up to the one at which their total reaches share,
// at most k.
func head(pool []candidate, share float64, k int) []candidate {
	sum := 0.0
	for i, c := range pool {
		if sum += c.p; sum >= share || i+1 == k {
			return pool[:i+1]
		}
	}
	return pool
}

// pickGreedy picks the argmax.
func pickGreedy(params, *rand.Rand) picker {
	return func([]candidate, []int32) int { return 0 }
}

// pickMinP implements min-p sampling.
func pickMinP(p params, rng *rand.Rand) picker {
	return func(pool []candidate, _ []int32) int { return drawIndex(minP(pool, p["min_p"]), rng) }
}
