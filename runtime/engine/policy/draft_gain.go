package policy

import (
	"math/bits"
	"time"

	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A DraftGain compares the measured tokens per second of steps with drafts and of plain
// steps, the time between steps included. It disables drafts with exponential back-off
// while they lose. Drafters estimate their gain; a DraftGain measures it. The zero
// value has measured nothing.
type DraftGain struct {
	sizes [gainSizes]gainSize
}

// gainSizes is the number of classes of steps: 1, 2, 3–4, 5–8, … sequences.
const gainSizes = 12

// A gainSize holds the measurements of one class.
type gainSize struct {
	plain, drafted rate
	backoff        speculate.Backoff
}

// A rate sums tokens and seconds of steps with decaying weights.
type rate struct {
	tokens, seconds, weight float64
	n                       int
}

// Numbers of steps: plain ones and steps with drafts to measure before they are
// compared, and steps with drafts after which plain ones are measured again.
const (
	gainPlain  = 2 * minSamples
	gainDrafts = 5 * minSamples
	gainAgain  = 16 * gainDrafts
)

// Begin counts a step that is about to start toward the back-off of its class.
func (g *DraftGain) Begin(seqs int) { g.size(seqs).backoff.Step() }

// Open reports whether steps with seqs sequences may have drafts.
func (g *DraftGain) Open(seqs int) bool { return !g.size(seqs).backoff.Active() }

// Measure records a step in which every sequence decoded: the time until the next step
// began, and the number of accepted drafted tokens. Both are divided by seqs, so steps
// of one class are comparable.
func (g *DraftGain) Measure(seqs int, drafted bool, accepted int64, took time.Duration) {
	s := g.size(seqs)
	r := &s.plain
	if drafted {
		r = &s.drafted
	}
	each := took.Seconds() / float64(seqs)
	if each <= 0 || r.n >= minSamples && each > outlier*r.seconds/r.weight {
		return
	}
	r.tokens = r.tokens*decay + 1 + float64(accepted)/float64(seqs)
	r.seconds = r.seconds*decay + each
	r.weight, r.n = r.weight*decay+1, r.n+1
	if drafted {
		s.judge(seqs > 1)
	}
}

// judge updates the back-off of a class after a step with drafts. When several
// sequences draft, plain steps hardly occur by themselves and are requested earlier.
func (s *gainSize) judge(several bool) {
	most := 4 * gainDrafts
	if several {
		most = gainDrafts
	}
	switch {
	case s.plain.n < gainPlain:
		if s.drafted.n >= most {
			s.backoff.Pause(gainPlain)
			s.drafted.n = 0
		}
	case s.drafted.n < gainDrafts:
	case s.gain() < 1-speculate.Margin:
		s.backoff.Start()
		s.drafted = rate{}
	case s.drafted.n%gainAgain == 0:
		s.backoff.Pause(gainPlain / 2)
	case s.gain() > 1+speculate.Margin:
		s.backoff.Reset()
	}
}

// gain returns the tokens per second of steps with drafts divided by those of plain
// steps.
func (s *gainSize) gain() float64 {
	return s.drafted.tokens / s.drafted.seconds * s.plain.seconds / s.plain.tokens
}

// size returns the class of steps with seqs sequences.
func (g *DraftGain) size(seqs int) *gainSize {
	return &g.sizes[min(bits.Len(uint(max(seqs, 1)-1)), gainSizes-1)]
}
