package policy

import (
	"math"
	"time"
)

// timed is up to how many tokens steps are timed one count at a time.
const timed = 128

// StepTimes are how long steps take, by what was measured. They are the policy's
// memory between steps.
type StepTimes struct {
	line  line
	table table
}

// Measure takes a step of so many tokens into account.
func (s *StepTimes) Measure(tokens int, d time.Duration) {
	s.line.measure(tokens, d)
	s.table.measure(tokens, d)
}

// Step estimates how many seconds an undisturbed step of so many tokens takes; 0:
// nothing was measured.
func (s *StepTimes) Step(tokens int) float64 { return s.table.step(tokens) }

// Untried says that steps of so many tokens were not measured often enough to be
// judged.
func (s *StepTimes) Untried(tokens int) bool { return s.table.untried(tokens) }

// A table is how long steps of 1…timed tokens take, each measured by itself: the
// first few further tokens of a step often cost nothing.
type table [timed + 1]struct {
	seconds float64
	n       int
}

// measure takes a step into account: other programs make steps slower, never
// faster.
func (t *table) measure(tokens int, d time.Duration) {
	if tokens > timed {
		return
	}
	m := &t[tokens]
	m.seconds = Blend(m.seconds, d.Seconds())
	m.n++
}

// Blend takes a new time into account. A faster one counts at once, a slower one
// by and by.
func Blend(before, now float64) float64 {
	if before == 0 || now < before {
		return now
	}
	return before + (min(now, outlier*before)-before)/10
}

// step estimates the seconds of a step of n tokens: as measured, between what
// was measured on a line, beyond it on the same. A step takes no longer than a
// larger one that was measured.
func (t *table) step(n int) float64 {
	below, above := 0, 0
	least := math.Inf(1) // of the steps of n tokens and more
	first := 0
	for i := 1; i <= timed; i++ {
		if t[i].n == 0 {
			continue
		}
		if first == 0 {
			first = i
		}
		if i >= n {
			least = min(least, t[i].seconds)
		}
		switch {
		case t[i].n < enough && i != first:
		case i <= n:
			below = i
		case above == 0:
			above = i
		}
	}
	switch {
	case first == 0:
		return 0
	case below == 0:
		return min(least, t.quickest(first)*guess(n)/guess(first))
	case above == 0:
		return min(least, t.beyond(n, first, below))
	}
	f := float64(n-below) / float64(above-below)
	low := t.quickest(below)
	return min(least, low+f*max(0, t.quickest(above)-low))
}

// untried says that steps of n tokens were not timed often enough to be judged.
func (t *table) untried(n int) bool { return n <= timed && t[n].n < enough }

// beyond is a step of n tokens where below is the most that were measured: as
// much for each further token as those up to there took, where that is known.
// Larger steps may cost more; trying them tells.
func (t *table) beyond(n, first, below int) float64 {
	low, high := t.quickest(first), t.quickest(below)
	if below == first {
		return high * guess(n) / guess(below)
	}
	slope := max(0, (high-low)/float64(below-first))
	return high + slope*float64(n-below)
}

// quickest is the least time that a step of n tokens or more took.
func (t *table) quickest(n int) float64 {
	least := math.Inf(1)
	for i := n; i <= timed; i++ {
		if t[i].n > 0 {
			least = min(least, t[i].seconds)
		}
	}
	return least
}

// guess is a step of n tokens in steps of one, before anything is known.
func guess(n int) float64 { return 1 + firstSlope*float64(n-1) }
