//go:build unix

package scheduler

import (
	"testing"
	"time"
)

// TestBatchingWindow checks that a first request waits while others arrive, but for no
// more than can run.
func TestBatchingWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ come, most, waits, got int }{{1, 8, 1, 1}, {4, 8, 4, 4}, {20, 8, 7, 8}, {0, 8, 0, 0}} {
		s, waits := new(Scheduler), 0
		come := func() {
			if len(s.waiting) < c.come {
				s.waiting = append(s.waiting, new(entry))
			}
		}
		come()
		s.awaitBatch(c.most, func(d time.Duration) {
			if waits++; d != batchingWindow || waits > 20 {
				t.Fatalf("waits %v, %d times", d, waits)
			}
			come()
		})
		if waits != c.waits || len(s.waiting) != c.got {
			t.Errorf("%d come, %d can run: %d after %d waits, expected %d after %d", c.come, c.most, len(s.waiting), waits, c.got, c.waits)
		}
	}
}
