package decode

import (
	"math"
	"math/rand/v2"
)

// pickMirostat keeps the surprise of the tokens near tau bits: it draws from
// those that surprise by at most mu, which it moves by eta times the error
// after each token (Basu et al. 2021, Mirostat, algorithm 2 as its authors
// simplified it).
func pickMirostat(p params, rng *rand.Rand) picker {
	tau, eta := p["tau"], p["eta"]
	mu := 2 * tau
	return func(pool []candidate, _ []int32) int {
		kept, sum := 1, pool[0].p
		for kept < len(pool) && -math.Log2(pool[kept].p) <= mu {
			sum += pool[kept].p
			kept++
		}
		at := drawIndex(pool[:kept], rng)
		mu -= eta * (-math.Log2(pool[at].p/sum) - tau)
		return at
	}
}
