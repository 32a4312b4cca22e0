//go:build unix

package engine

import (
	"math"
	"math/bits"
	"time"
)

// A watch compares the tokens a second that steps with drafts give with those of
// plain steps, as they were, everything between the steps included; and lets no
// drafts through for a while where they lose. Drafters expect; a watch knows.
type watch struct {
	now      func() time.Time
	since    time.Time // when the step began; zero: it does not count
	seqs     int       // in the step
	accepted int64     // before it
	drafted  bool
	sizes    [watchSizes]watchedSize
}

// A watchedSize is what is known of steps of about so many sequences.
type watchedSize struct {
	plain, drafted watched
	rest           int // steps that take no drafts yet
	nap            int // the next rest
}

// watched sums steps of a kind, the latest most.
type watched struct {
	tokens, seconds float64
	n               int
}

const (
	watchSizes  = 12   // of 1, 2, 3–4, 5–8, … sequences
	watchPlain  = 6    // plain steps before anything is judged
	watchDrafts = 16   // the same of steps with drafts
	watchAgain  = 256  // steps with drafts until a few plain ones are timed again
	watchLoss   = 0.98 // the gain below which drafts rest
	watchNap    = 64   // steps of the first rest; the next is twice as long
	watchSleep  = 256  // steps of the longest
	watchMemory = 0.97 // what the past weighs after one more step
	watchGap    = 4    // so many times as long as others was a step in which somebody waited for something else
)

// start marks the start of a step.
func (w *watch) start() { w.since = w.now() }

// took tells what the step was of: sequences that decode, each its one token
// besides the drafted ones; other steps do not count.
func (w *watch) took(parts []part, accepted int64) {
	w.seqs, w.drafted, w.accepted = len(parts), false, accepted
	for _, p := range parts {
		if p.n != 1 {
			w.since = time.Time{}
		}
		w.drafted = w.drafted || p.drafted > 0
	}
	if s := w.size(len(parts)); s.rest > 0 {
		s.rest--
	}
}

// end counts the step that began, when the next is about to.
func (w *watch) end(accepted int64) {
	if w.since.IsZero() || w.seqs == 0 {
		return
	}
	d := w.now().Sub(w.since).Seconds()
	s := w.size(w.seqs)
	k := &s.plain
	if w.drafted {
		k = &s.drafted
	}
	seqs := float64(w.seqs)
	each := d / seqs // sequences of one size are counted alike, however many there are
	w.seqs = 0
	if d <= 0 || k.n > 2 && each > watchGap*k.seconds/k.steps() {
		return
	}
	k.add(1+float64(accepted-w.accepted)/seqs, each)
	if w.drafted {
		s.judge(seqs > 1)
	}
}

func (k *watched) add(tokens, seconds float64) {
	k.tokens, k.seconds, k.n = k.tokens*watchMemory+tokens, k.seconds*watchMemory+seconds, k.n+1
}

// steps is the weight of the steps in the sums.
func (k *watched) steps() float64 {
	return (1 - math.Pow(watchMemory, float64(k.n))) / (1 - watchMemory)
}

// judge looks at a size after a step with drafts. Where several sequences draft
// there is hardly a plain step by itself.
func (s *watchedSize) judge(several bool) {
	enough := 4 * watchDrafts
	if several {
		enough = watchDrafts
	}
	if s.nap == 0 {
		s.nap = watchNap
	}
	switch {
	case s.plain.n < watchPlain:
		if s.drafted.n >= enough {
			s.rest, s.drafted.n = watchPlain, 0
		}
	case s.drafted.n < watchDrafts:
	case s.gain() < watchLoss:
		s.rest, s.drafted = s.nap, watched{}
		s.nap = min(2*s.nap, watchSleep)
	case s.drafted.n%watchAgain == 0:
		s.rest = watchPlain / 2
	case s.gain() > 1/watchLoss:
		s.nap = watchNap
	}
}

// gain is how many times the tokens a second of plain steps those with drafts
// give.
func (s *watchedSize) gain() float64 {
	return s.drafted.tokens / s.drafted.seconds * s.plain.seconds / s.plain.tokens
}

func (w *watch) size(seqs int) *watchedSize {
	return &w.sizes[min(bits.Len(uint(max(seqs, 1)-1)), watchSizes-1)]
}

// open says whether steps of so many sequences take drafts.
func (w *watch) open(seqs int) bool { return w.size(seqs).rest == 0 }

// ForgetDrafts makes the engine forget what drafts gained so far, so that those
// of other texts are judged by themselves.
func (e *Engine) ForgetDrafts() { e.watch = watch{now: e.watch.now} }
