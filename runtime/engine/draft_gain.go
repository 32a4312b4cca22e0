//go:build unix

package engine

import (
	"time"

	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// draftSteps time steps for the policy's DraftGain.
type draftSteps struct {
	policy.DraftGain
	since    time.Time // when the step began; zero: it does not count
	seqs     int       // in the step
	accepted int64     // before it
	drafted  bool
}

// took tells what the step was of: sequences that generate, each its one token
// besides the drafted ones; other steps do not count.
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

// end counts the step that began, when the next is about to.
func (g *draftSteps) end(now time.Time, accepted int64) {
	if !g.since.IsZero() && g.seqs > 0 {
		g.Measure(g.seqs, g.drafted, accepted-g.accepted, now.Sub(g.since))
	}
	g.seqs = 0
}

// ForgetDrafts makes the engine forget what drafts gained so far, so that those
// of other texts are judged by themselves.
func (e *Engine) ForgetDrafts() { e.gain = draftSteps{} }
