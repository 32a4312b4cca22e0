package toolchain

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestFirstAlone: runs take turns until one succeeds, and who waits stops when its time is up.
func TestFirstAlone(t *testing.T) {
	t.Parallel()
	c := filled(t, "obj")
	needLocks(t, c)
	var running, runs, succeeded atomic.Int32
	failure := errors.New("the first run fails")
	together := make(chan struct{})
	f := func() error {
		n := runs.Add(1)
		if now := running.Add(1); now > 1 && succeeded.Load() == 0 {
			t.Errorf("%d runs at once before one succeeded", now)
		}
		defer running.Add(-1)
		if n == 1 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := c.FirstAlone(ctx, "key", func() error { t.Error("two runs at once"); return nil }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("waiting for a run: %v", err)
			}
			return failure
		}
		if succeeded.Add(1) > 2 { // the last two meet
			select {
			case together <- struct{}{}:
			case <-together:
			case <-time.After(time.Minute):
				t.Error("after a success runs still take turns")
			}
		}
		return nil
	}
	if err := c.FirstAlone(t.Context(), "key", f); err != failure {
		t.Fatalf("the first run: %v", err)
	}
	for range 2 {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := c.FirstAlone(t.Context(), "key", f); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if n := runs.Load(); n != 5 {
		t.Errorf("%d runs, expected 5", n)
	}
}
