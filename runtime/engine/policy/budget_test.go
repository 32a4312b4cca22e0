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

// TestRoom: steps last about as long as they may, and end with a full tile.
func TestRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit       time.Duration
		taken, live int
		least, most int
	}{
		{100 * time.Millisecond, 0, 1, 220, 265}, // 245 tokens
		{20 * time.Millisecond, 8, 8, 24, 40},    // 20 ms: 45 tokens
		{20 * time.Millisecond, 20, 20, 12, 44},  // twice the 10 ms that all 20 take
		{20 * time.Millisecond, 4, 40, 76, 92},   // twice the 18 ms that all 40 will take
		{time.Millisecond, 1, 1, 15, 15},
		{0, 5, 5, 1 << 30, 1 << 30},
	} {
		got := measured(c.live).room(c.limit, c.taken)
		if got < c.least || got > c.most {
			t.Errorf("%v beside %d of %d: %d tokens, expected %d to %d", c.limit, c.taken, c.live, got, c.least, c.most)
		}
		if c.limit > 0 && (c.taken+got)%tileRows != 0 {
			t.Errorf("%v beside %d of %d: %d tokens do not fill a tile", c.limit, c.taken, c.live, got)
		}
	}
}

// TestLeastRoom: however many generate, a prompt gets something.
func TestLeastRoom(t *testing.T) {
	t.Parallel()
	for taken := range 64 {
		if got := measured(taken).room(time.Microsecond, taken); got < tileRows/2 {
			t.Errorf("%d tokens beside %d that generate, expected %d at least", got, taken, tileRows/2)
		}
	}
}
