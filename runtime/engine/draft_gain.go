//go:build unix

package engine

import (
	"time"

	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// draftSteps measures steps for policy.DraftGain.
type draftSteps struct {
	policy.DraftGain
	since    time.Time // start of the step; zero: the step is not counted
	seqs     int       // sequences in the step
	accepted int64     // Stats.Accepted before the step
	drafted  bool
}

// took records the parts of a step. Only steps in which every sequence decodes one
// token, besides its draft, are counted.
func (g *draftSteps) took(parts []part, accepted int64) {
	g.seqs, g.drafted, g.accepted = len(parts), false, accepted
	for _, p := range parts {
		if p.n != 1 {
			g.since = time.Time{}
		}
		g.drafted = g.drafted || p.drafted > 0
	}
	g.Begin(g.seqs)
}

// end measures the last step; it is called when the next one is about to start.
func (g *draftSteps) end(now time.Time, accepted int64) {
	if !g.since.IsZero() && g.seqs > 0 {
		g.Measure(g.seqs, g.drafted, accepted-g.accepted, now.Sub(g.since))
	}
	g.seqs = 0
}

// ForgetDrafts discards the measured gain of drafts. Benchmarks call it between texts.
func (e *Engine) ForgetDrafts() { e.gain = draftSteps{} }
