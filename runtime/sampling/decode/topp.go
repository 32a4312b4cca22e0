package decode

// topP keeps the fewest most probable candidates with a total probability of at least p
// (nucleus sampling; Holtzman et al. 2020, section 3.1), at least one; 0 and 1 keep
// all. The nucleus is usually small, so topP sorts growing fronts rather than the whole
// vocabulary.
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
