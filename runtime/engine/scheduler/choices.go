//go:build unix

package scheduler

// chooses reports whether the rows of logits serve only to choose tokens.
func (g *generate) chooses() bool { return g.Logprobs < 0 && !g.Echo }

// topK returns the number of largest logits of a row that suffice all branches; 0: one
// reads whole rows.
func (g *generate) topK() (k int) {
	if !g.chooses() {
		return 0
	}
	for _, s := range g.Samplers {
		n := s.TopK()
		if n == 0 {
			return 0
		}
		k = max(k, n)
	}
	return k
}

// setChoices lets the device choose the tokens of several branches, each with a sampler of its
// own.
func (g *generate) setChoices(x *access) {
	if len(g.branches) == 1 || !g.chooses() {
		return
	}
	for i := range g.branches {
		x.s.eng.SetChoice(g.branches[i].id, g.Samplers[i].Choice)
	}
}
