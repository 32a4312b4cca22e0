//go:build unix

package scheduler

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// What a client may take of the processors for work on its requests while steps
// take them all. Measured by script/attack on two processors; see docs/security.md.
const (
	workSlice = 500 * time.Microsecond // after which work is charged
	workBurst = 20 * time.Millisecond  // that a client may take at once
	workShare = 1. / 8                 // of one processor's time from then on
	allShare  = 1. / 4                 // the same for all clients together
)

// work shares processor time among requests: reading prompts, making grammars,
// finding masks. While steps compute on every processor each client has a bucket
// of time, and so have all together; who has used its time up goes on when it has
// some again, or when no step runs.
type work struct {
	mu      sync.Mutex
	spare   bool          // processors are left beside the steps
	busy    bool          // a step runs, or soon will
	idle    chan struct{} // closed when busy ends
	all     bucket
	clients map[string]*bucket
}

// A bucket is time that may be used.
type bucket struct {
	left time.Duration
	at   time.Time // when left was right
}

func (b *bucket) fill(now time.Time, share float64) {
	b.left = min(workBurst, b.left+time.Duration(share*float64(now.Sub(b.at))))
	b.at = now
}

// wait is how long it takes until there is time again.
func (b *bucket) wait(share float64) time.Duration {
	return max(0, time.Duration(float64(workSlice-b.left)/share))
}

func newWork(threads int) *work {
	w := &work{spare: threads < runtime.GOMAXPROCS(0), idle: make(chan struct{}), clients: map[string]*bucket{}, all: bucket{workBurst, time.Now()}}
	close(w.idle)
	return w
}

// setBusy says whether steps run from now on.
func (w *work) setBusy(busy bool) {
	if w.spare {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if busy == w.busy {
		return
	}
	if w.busy = busy; busy {
		w.idle = make(chan struct{})
	} else {
		close(w.idle)
	}
}

// mostBuckets is how many clients are remembered before those are forgotten that
// have used nothing for long.
const mostBuckets = 1024

// bucket is a client's. w.mu is held.
func (w *work) bucket(client string, now time.Time) *bucket {
	b := w.clients[client]
	if b == nil {
		if len(w.clients) >= mostBuckets {
			for name, b := range w.clients {
				if b.fill(now, workShare); b.left == workBurst {
					delete(w.clients, name)
				}
			}
		}
		b = &bucket{workBurst, now}
		w.clients[client] = b
	}
	b.fill(now, workShare)
	return b
}

// charge takes time that a client has used from its bucket, and says how long it
// has to wait until it may use more, and what ends the wait before.
func (w *work) charge(client string, used time.Duration) (time.Duration, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.busy {
		return 0, nil
	}
	now := time.Now()
	b := w.bucket(client, now)
	w.all.fill(now, allShare)
	b.left -= used
	w.all.left -= used
	if b.left > workBurst/2 || b.left > 0 && w.all.left > 0 { // who takes little does not wait for others
		return 0, nil
	}
	return max(b.wait(workShare), w.all.wait(allShare)), w.idle
}

// Work does something for a client's request, beside steps and in slices: f calls
// tick often, at least every 100 µs or so, and ends when that returns an error.
// Where the client has used its share of time up Work waits first, and tick does
// after each slice.
func (s *Scheduler) Work(ctx context.Context, client string, f func(tick func() error) error) error {
	var begun time.Time
	pause := func(used time.Duration) error {
		for {
			wait, idle := s.work.charge(client, used)
			if wait == 0 {
				begun = time.Now()
				return ctx.Err()
			}
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-idle:
			case <-s.done:
				timer.Stop()
				return ErrClosed
			case <-ctx.Done():
			}
			timer.Stop()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			used = 0
		}
	}
	if err := pause(0); err != nil {
		return err
	}
	err := f(func() error {
		if used := time.Since(begun); used > workSlice {
			return pause(used)
		}
		return nil
	})
	s.work.charge(client, time.Since(begun))
	return err
}
