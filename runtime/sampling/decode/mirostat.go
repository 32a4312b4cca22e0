package decode

import (
	"math"
	"math/rand/v2"
)

// pickMirostat1 implements Mirostat 1 (Basu et al. 2021, algorithm 1), which keeps the
// surprise of the tokens near tau bits. It estimates the exponent of Zipf's law from
// the m most probable tokens (equation 30), samples from the k most probable that then
// have a surprise of mu (equation 24), and corrects mu by eta times the error. The pool
// contains the most probable part of the vocabulary, which suffices because only ratios
// of probabilities and the vocabulary's size matter.
func pickMirostat1(p params, rng *rand.Rand) picker {
	tau, eta, m := p["tau"], p["eta"], p.whole("m")
	mu := 2 * tau
	return func(pool []candidate, _ []int32) int {
		front(pool, m)
		k := min(len(pool), zipfFront(zipfExponent(pool, m), mu, p.whole(total)))
		selectFront(pool, k) // sampling needs no order, and sorting a vocabulary takes longer than a step
		sum := 0.0
		for _, c := range pool[:k] {
			sum += c.p
		}
		at := drawIndex(pool[:k], rng)
		mu -= eta * (-math.Log2(pool[at].p/sum) - tau)
		return at
	}
}

// zipfExponent returns the exponent s of p(rank) ~ rank^-s, fitted to the m most
// probable candidates by least squares of the logarithms of their ratios.
func zipfExponent(pool []candidate, m int) float64 {
	up, down := 0.0, 0.0
	for i := 0; i+1 < min(m, len(pool)) && pool[i+1].p > 0; i++ {
		t := math.Log(float64(i+2) / float64(i+1))
		up += t * math.Log(pool[i].p/pool[i+1].p)
		down += t * t
	}
	if down == 0 {
		return 1
	}
	return up / down
}

// zipfFront returns the number k of n tokens with Zipf exponent s for a surprise of mu
// bits.
func zipfFront(s, mu float64, n int) int {
	epsilon := s - 1
	if math.Abs(epsilon) < 1e-9 { // the limit at which the formula divides by 0
		epsilon = 1e-9
	}
	k := math.Pow(epsilon*math.Exp2(mu)/(1-math.Pow(float64(n), -epsilon)), 1/s)
	if !(k >= 1) {
		return 1
	}
	return int(min(math.Round(k), float64(n)))
}

// pickMirostat implements Mirostat 2 (Basu et al. 2021, algorithm 2, as simplified by
// its authors), which keeps the surprise of the tokens near tau bits. It samples from
// the tokens with a surprise of at most mu, which it corrects by eta times the error
// after each token.
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
