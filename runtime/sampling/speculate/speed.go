package speculate

import "time"

// speedSamples is how many steps of a kind are timed before they are compared.
const speedSamples = 6

// speedAgain is from how many steps with drafts to how many some plain ones are
// timed again.
const speedAgain = 128

// speedLoss is the gain below which drafting is left: what is between is noise.
const speedLoss = 0.97

// speedMemory is what the past weighs after one more step.
const speedMemory = 0.95

// speeds compare the tokens a second of steps with drafts and of plain ones, as
// they were: with all that drafting takes besides the model's step.
type speeds struct {
	now   func() time.Time
	since time.Time // when the step began; zero: it is not timed
	kind  int       // of the step: 1 has a draft
	kinds [2]struct {
		tokens, seconds float64
		n               int
	}
}

// begin marks the start of a step.
func (s *speeds) begin(draft bool) {
	s.since, s.kind = s.now(), 0
	if draft {
		s.kind = 1
	}
}

// end counts a step that began and gave tokens.
func (s *speeds) end(tokens int) {
	if s.since.IsZero() {
		return
	}
	k := &s.kinds[s.kind]
	if d := s.now().Sub(s.since).Seconds(); d > 0 {
		k.tokens, k.seconds, k.n = k.tokens*speedMemory+float64(tokens), k.seconds*speedMemory+d, k.n+1
	}
	s.since = time.Time{}
}

// gain is how many times the tokens a second steps with drafts give; 0: not
// enough of both kinds were timed.
func (s *speeds) gain() float64 {
	plain, draft := s.kinds[0], s.kinds[1]
	if plain.n < speedSamples || draft.n < 2*speedSamples {
		return 0
	}
	return draft.tokens / draft.seconds * plain.seconds / plain.tokens
}

// stale says, once in a while, that plain steps should be timed again.
func (s *speeds) stale() bool { return s.kinds[1].n%speedAgain == speedAgain-1 }

func (s *speeds) slower() bool { g := s.gain(); return g > 0 && g < speedLoss }
func (s *speeds) faster() bool { return s.gain() > 1 }

// again forgets the steps with drafts, which are to be judged anew.
func (s *speeds) again() { s.kinds[1].tokens, s.kinds[1].seconds, s.kinds[1].n = 0, 0, 0 }
