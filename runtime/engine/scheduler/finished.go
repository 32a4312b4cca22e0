//go:build unix

package scheduler

// finished counts the continuations that have not ended by themselves, and measures a
// generation of which all have ended.
func (g *generate) finished(err error) {
	m := g.s.opt.Metrics
	stopped, cut := 0, len(g.Samplers)-len(g.branches)
	for i := range g.branches {
		b := &g.branches[i]
		g.generated += b.count
		switch {
		case b.ended: // counted with its event
		case g.stops[i].Load():
			stopped++
		default:
			cut++
		}
	}
	m.observeFinish(FinishStop, stopped)
	m.observeFinish(finishOf(err), cut)
	if cut == 0 {
		m.observeSpan(&g.span)
	}
}

// finished counts and measures a beam search, which is one answer.
func (b *beams) finished(err error) {
	if err != nil {
		b.s.opt.Metrics.observeFinish(finishOf(err), 1)
		return
	}
	b.s.opt.Metrics.observeFinish(FinishStop, 1)
	b.s.opt.Metrics.observeSpan(&b.span)
}
