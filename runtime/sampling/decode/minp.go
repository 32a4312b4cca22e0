package decode

// minP keeps the candidates with at least p times the largest probability (min-p
// sampling; Nguyen et al. 2024, section 3); 0 keeps all.
func minP(c []candidate, p float64) []candidate {
	if p <= 0 {
		return c
	}
	top := 0.0
	for _, x := range c {
		top = max(top, x.p)
	}
	kept := c[:0]
	for _, x := range c {
		if x.p >= p*top {
			kept = append(kept, x)
		}
	}
	return kept
}
