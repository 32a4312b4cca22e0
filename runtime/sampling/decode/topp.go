package decode

// topP keeps the fewest candidates whose probabilities add up to p, largest
// first (nucleus sampling, Holtzman et al. 2020, section 3.1), at least one; 0
// and 1 keep all. The nucleus is nearly always small, so it is looked for in
// growing fronts rather than in a sorted vocabulary.
func topP(c []candidate, p float64) []candidate {
	if p <= 0 || p >= 1 {
		return c
	}
	for k := 64; ; k *= 8 {
		front(c, k)
		sum := 0.0
		for i := range c[:min(k, len(c))] {
			sum += c[i].p
			if sum >= p {
				return c[:i+1]
			}
		}
		if k >= len(c) {
			return c
		}
	}
}
