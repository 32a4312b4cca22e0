package policy

import (
	"math/bits"
	"time"

	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A DraftGain compares the tokens per second that steps with drafts give with
// those of plain steps, as they were measured, everything between the steps
// included; and lets no drafts through for a while where they lose. Drafters
// expect; it knows. The zero value has measured nothing.
type DraftGain struct {
	sizes [gainSizes]gainSize
}

// gainSizes are the classes of steps: of 1, 2, 3–4, 5–8, … sequences.
const gainSizes = 12

// A gainSize is what is known of steps of about so many sequences.
type gainSize struct {
	plain, drafted rate
	backoff        speculate.Backoff
}

// A rate sums the tokens and seconds of steps, the latest most.
type rate struct {
	tokens, seconds, weight float64
	n                       int
}

// How many steps of a kind are measured before they are judged, and after how
// many with drafts a few plain ones are measured again.
const (
	gainPlain  = 2 * enough
	gainDrafts = 5 * enough
	gainAgain  = 16 * gainDrafts
)

// Begin counts a step of so many sequences that is about to be made.
func (g *DraftGain) Begin(seqs int) { g.size(seqs).backoff.Step() }

// Open says whether steps of so many sequences take drafts.
func (g *DraftGain) Open(seqs int) bool { return !g.size(seqs).backoff.Resting() }

// Measure takes a step into account in which every sequence generated: how long
// it was until the next one began, and how many drafted tokens were accepted.
// Steps of one class count alike, however many sequences they had.
func (g *DraftGain) Measure(seqs int, drafted bool, accepted int64, took time.Duration) {
	s := g.size(seqs)
	r := &s.plain
	if drafted {
		r = &s.drafted
	}
	each := took.Seconds() / float64(seqs)
	if each <= 0 || r.n >= enough && each > outlier*r.seconds/r.weight {
		return
	}
	r.tokens = r.tokens*memory + 1 + float64(accepted)/float64(seqs)
	r.seconds = r.seconds*memory + each
	r.weight, r.n = r.weight*memory+1, r.n+1
	if drafted {
		s.judge(seqs > 1)
	}
}

// judge looks at a size after a step with drafts. Where several sequences draft
// there is hardly a plain step by itself.
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
		s.backoff.Rest()
		s.drafted = rate{}
	case s.drafted.n%gainAgain == 0:
		s.backoff.Pause(gainPlain / 2)
	case s.gain() > 1+speculate.Margin:
		s.backoff.Paid()
	}
}

// gain is how many times the tokens per second of plain steps those with drafts
// give.
func (s *gainSize) gain() float64 {
	return s.drafted.tokens / s.drafted.seconds * s.plain.seconds / s.plain.tokens
}

func (g *DraftGain) size(seqs int) *gainSize {
	return &g.sizes[min(bits.Len(uint(max(seqs, 1)-1)), gainSizes-1)]
}
