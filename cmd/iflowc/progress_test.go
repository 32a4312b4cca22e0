package main

import (
	"testing"
	"time"
)

func TestTimeLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took        time.Duration
		done, total int64
		want        string
	}{
		{500 * time.Millisecond, 1, 10, ""},
		{2 * time.Second, 0, 10, ""},
		{2 * time.Second, 10, 10, ""},
		{2 * time.Second, 1, 10, ", 19 s left"},
		{10 * time.Second, 5, 10, ", 11 s left"},
		{time.Hour, 1, 1 << 60, ", 60001 min left"},
		{time.Minute, 1, 100, ", 100 min left"},
	} {
		if got := timeLeft(c.took, c.done, c.total); got != c.want {
			t.Errorf("%v, %d of %d: %q, want %q", c.took, c.done, c.total, got, c.want)
		}
	}
}
