package policy

import (
	"testing"
	"time"
)

// measured is an input after 400 steps of 2 ms and 0.4 ms a token, however often
// something else held one up.
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

func TestRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit          time.Duration
		decoding, live int
		least, most    int
	}{
		{20 * time.Millisecond, 0, 1, 220, 265}, // five times 20 ms: 245 tokens
		{20 * time.Millisecond, 8, 8, 30, 43},   // 20 ms: 45 tokens
		{20 * time.Millisecond, 20, 20, 20, 30}, // 25 tokens
		{20 * time.Millisecond, 4, 40, 50, 66},  // 1.5 times the 18 ms that all 40 will take
		{time.Millisecond, 1, 1, leastChunk, leastChunk},
		{0, 5, 5, 1 << 30, 1 << 30},
	} {
		if got := measured(c.live).room(c.limit, c.decoding); got < c.least || got > c.most {
			t.Errorf("%v beside %d of %d: %d tokens, expected %d to %d", c.limit, c.decoding, c.live, got, c.least, c.most)
		}
	}
}

// TestBudgetBeside: however many generate, a prompt gets something.
func TestBudgetBeside(t *testing.T) {
	t.Parallel()
	in := measured(0)
	in.Objective.StepTime = time.Microsecond
	for taken := range 64 {
		if got := in.budgetBeside(taken, 0.1, false); got < leastChunk/2 {
			t.Errorf("%d tokens beside %d that generate, expected %d at least", got, taken, leastChunk/2)
		}
	}
}
