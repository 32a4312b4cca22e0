package policy

import (
	"math"
	"time"
)

// maxTimed is the largest number of tokens with a separate estimate of the step's
// duration.
const maxTimed = 128

// StepTimes estimate step durations from measurements. They are the policy's state
// between steps.
type StepTimes struct {
	line  line
	table table
}

// Measure adds the duration of a step.
func (s *StepTimes) Measure(tokens int, d time.Duration) {
	s.line.measure(tokens, d)
	s.table.measure(tokens, d)
}

// Step returns the estimated duration in seconds of a step without disturbance; 0:
// nothing was measured.
func (s *StepTimes) Step(tokens int) float64 { return s.table.step(tokens) }

// Untried reports whether too few steps of this size were measured for an estimate.
func (s *StepTimes) Untried(tokens int) bool { return s.table.untried(tokens) }

// A table has a separate estimate for each step size up to maxTimed, because the first
// few additional tokens of a step often cost nothing.
type table [maxTimed + 1]struct {
	seconds float64
	n       int
}

// measure adds a step. Other processes only make steps slower, so Blend weights fast
// ones more.
func (t *table) measure(tokens int, d time.Duration) {
	if tokens > maxTimed {
		return
	}
	m := &t[tokens]
	m.seconds = Blend(m.seconds, d.Seconds())
	m.n++
}

// Blend updates an estimate with a new time: a faster one replaces it, a slower one is
// blended in with weight 1/10.
func Blend(before, now float64) float64 {
	if before == 0 || now < before {
		return now
	}
	return before + (min(now, outlier*before)-before)/10
}

// step returns the estimated seconds of a step of n tokens. It interpolates linearly
// between measured sizes and extrapolates beyond them. The estimate never exceeds that
// of a larger measured step.
func (t *table) step(n int) float64 {
	below, above := 0, 0
	least := math.Inf(1) // minimum of the steps of at least n tokens
	first := 0
	for i := 1; i <= maxTimed; i++ {
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
		case t[i].n < minSamples && i != first:
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
		return min(least, t.fastest(first)*priorCost(n)/priorCost(first))
	case above == 0:
		return min(least, t.extrapolate(n, first, below))
	}
	f := float64(n-below) / float64(above-below)
	low := t.fastest(below)
	return min(least, low+f*max(0, t.fastest(above)-low))
}

// untried reports whether too few steps of n tokens were measured for an estimate.
func (t *table) untried(n int) bool { return n <= maxTimed && t[n].n < minSamples }

// extrapolate returns the estimated seconds of a step of n tokens, more than the
// largest measured size below. It uses the slope between first and below, or the prior
// if they are equal. Larger steps may cost more, which only measuring them can show.
func (t *table) extrapolate(n, first, below int) float64 {
	low, high := t.fastest(first), t.fastest(below)
	if below == first {
		return high * priorCost(n) / priorCost(below)
	}
	slope := max(0, (high-low)/float64(below-first))
	return high + slope*float64(n-below)
}

// fastest returns the least estimate of the steps of at least n tokens.
func (t *table) fastest(n int) float64 {
	least := math.Inf(1)
	for i := n; i <= maxTimed; i++ {
		if t[i].n > 0 {
			least = min(least, t[i].seconds)
		}
	}
	return least
}

// priorCost returns the assumed duration of a step of n tokens in one-token steps,
// before any is measured.
func priorCost(n int) float64 { return 1 + firstSlope*float64(n-1) }
