package policy

import (
	"testing"
	"time"
)

// measured returns an input after 400 steps of 2 ms plus 0.4 ms per token, some of
// which were disturbed.
func measured(live int) *Input {
	in := &Input{Requests: make([]Request, live), Times: new(StepTimes)}
	for i := range 400 {
		n := 1 + i*7%60
		d := time.Duration(2e6 + 4e5*float64(n))
		if i%50 == 49 {
			d *= 40
		}
		in.Times.Measure(n, d)
	}
	return in
}

// TestPromptBudget checks that steps last about as long as their target and end with a
// full tile. Each decoding request has one token in the step.
func TestPromptBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		time           time.Duration
		decoding, live int
		least, most    int
	}{
		{20 * time.Millisecond, 0, 1, 350, 410},  // 160 ms: 395 tokens
		{20 * time.Millisecond, 8, 8, 24, 40},    // 20 ms: 45 tokens
		{20 * time.Millisecond, 20, 20, 12, 44},  // twice the 10 ms that all 20 take
		{20 * time.Millisecond, 20, 40, 60, 76},  // twice the 18 ms that all 40 will take
		{20 * time.Millisecond, 4, 40, 156, 190}, // four times 20 ms: nine wait per decoding request
		{20 * time.Millisecond, 1, 3, 76, 108},   // 40 ms: two wait for one
		{time.Millisecond, 1, 1, 15, 15},
		{0, 5, 5, 1 << 30, 1 << 30},
	} {
		in := measured(c.live)
		for i := range c.decoding {
			in.Requests[i].Decoding = true
		}
		in.Objective.StepTime = c.time
		got := in.promptBudget(c.decoding)
		if got < c.least || got > c.most {
			t.Errorf("%v beside %d of %d: %d tokens, expected %d to %d", c.time, c.decoding, c.live, got, c.least, c.most)
		}
		if c.time > 0 && (c.decoding+got)%tileRows != 0 {
			t.Errorf("%v beside %d of %d: %d tokens do not fill a tile", c.time, c.decoding, c.live, got)
		}
	}
}

// TestLeastBudget checks that a prompt makes progress however many requests decode.
func TestLeastBudget(t *testing.T) {
	t.Parallel()
	for taken := range 64 {
		in := measured(taken + 1)
		in.Requests[0].Decoding, in.Objective.StepTime = true, time.Microsecond
		if got := in.promptBudget(taken); got < tileRows/2 {
			t.Errorf("%d tokens beside %d that generate, expected %d at least", got, taken, tileRows/2)
		}
	}
}
