//go:build unix

package scheduler

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// spin uses CPU time in slices and adds it up.
func spin(d time.Duration, used *atomic.Int64) func(tick func() error) error {
	return func(tick func() error) error {
		for at := time.Now(); time.Duration(used.Load()) < d; {
			if err := tick(); err != nil {
				return err
			}
			now := time.Now()
			used.Add(int64(min(now.Sub(at), time.Millisecond))) // without the pauses
			at = now
		}
		return nil
	}
}

// TestWork checks that, while steps use every core, a client with an empty bucket waits
// and one with little work does not.
func TestWork(t *testing.T) {
	t.Parallel()
	s := &Scheduler{work: newWork(runtime.GOMAXPROCS(0)), done: make(chan struct{})}
	s.work.setBusy(true)
	var heavy atomic.Int64
	ended := make(chan error, 1)
	go func() { ended <- s.Work(t.Context(), "heavy", spin(time.Hour, &heavy)) }()
	for deadline := time.Now().Add(10 * time.Second); time.Duration(heavy.Load()) < workBurst; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in 10 s the client got %v at once, of %v", time.Duration(heavy.Load()), workBurst)
		}
	}
	before, begun := heavy.Load(), time.Now()
	for range 20 {
		if err := s.Work(t.Context(), "light", func(tick func() error) error { return tick() }); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	got, most := time.Duration(heavy.Load()-before), time.Duration(allFraction*float64(time.Since(begun)))+2*workBurst
	if got > most {
		t.Errorf("in %v the heavy client got %v, more than %v", time.Since(begun), got, most)
	}
	leaving, leave := context.WithTimeout(t.Context(), time.Millisecond)
	defer leave()
	if err := s.Work(leaving, "heavy", spin(time.Hour, new(atomic.Int64))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a client that leaves: %v", err)
	}
	s.work.setBusy(false) // no step runs: no limits
	before = heavy.Load()
	for deadline := time.Now().Add(10 * time.Second); time.Duration(heavy.Load()-before) < 3*workBurst; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("while no step runs the client waits")
		}
	}
	s.work.setBusy(true)
	close(s.done)
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
