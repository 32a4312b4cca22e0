//go:build unix

package engine

import (
	"testing"
	"time"
)

// TestPace: of a machine whose steps take 2 ms and 0.4 ms a token, however
// often something else holds one up.
func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	for i := range 400 {
		n := 1 + i*7%60
		d := time.Duration(2e6 + 4e5*float64(n))
		if i%50 == 49 {
			d *= 40
		}
		p.measure(n, d)
	}
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
		if got := p.room(c.limit, c.decoding, c.live); got < c.least || got > c.most {
			t.Errorf("%v beside %d of %d: %d tokens, expected %d to %d", c.limit, c.decoding, c.live, got, c.least, c.most)
		}
	}
}

// TestRoomBeside: however many are in decoding, a prompt gets something.
func TestRoomBeside(t *testing.T) {
	t.Parallel()
	e := &Engine{opt: Options{StepTime: time.Microsecond, MaxTokens: 512}}
	for i := range 100 {
		e.pace.measure(1+i%60, time.Duration(2e6+4e5*float64(1+i%60)))
	}
	for taken := range 64 {
		if got := e.roomBeside(taken, 0.1); got < leastChunk/2 {
			t.Errorf("%d tokens beside %d in decoding, expected %d at least", got, taken, leastChunk/2)
		}
	}
}
