//go:build unix

package scheduler

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// What a client may take of the processors for work on its requests while steps
// take them all. Measured by script/attack --only '^(regex-fresh|text-cjk)$' on two
// processors: with a sixteenth, an eighth and a quarter the other client's median is
// 0.5 and 0.3 times that beside ordinary requests; its p99 beside texts of 4 MB is
// 209, 278 and 375 ms.
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
	heavy   chan struct{} // a place for each processor, for clients that have used half of their burst
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
	w := &work{spare: threads < runtime.GOMAXPROCS(0), idle: make(chan struct{}), clients: map[string]*bucket{}, heavy: make(chan struct{}, runtime.GOMAXPROCS(0)), all: bucket{workBurst, time.Now()}}
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

// charge takes time that a client has used from its bucket, and says whether it
// has used much; if so, how long it has to wait until it may use more, and what ends
// the wait before. While no step runs nobody waits, or gets into debt.
func (w *work) charge(client string, used time.Duration) (heavy bool, wait time.Duration, idle <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	b := w.bucket(client, now)
	w.all.fill(now, allShare)
	if !w.busy {
		used = max(0, min(used, b.left, w.all.left))
	}
	b.left -= used
	w.all.left -= used
	if b.left > workBurst/2 { // who takes little does not wait for others
		return false, 0, nil
	}
	if !w.busy || b.left > 0 && w.all.left > 0 {
		return true, 0, nil
	}
	return true, max(b.wait(workShare), w.all.wait(allShare)), w.idle
}

// Work does something for a client's request, beside steps and in slices: f calls
// tick often, at least every 100 µs or so, and ends when that returns an error.
// Where the client has used its share of time up Work waits first, and tick does
// after each slice; also for those of others that take much, of whom no more go on
// than there are processors.
func (s *Scheduler) Work(ctx context.Context, client string, f func(tick func() error) error) error {
	w := &worker{s: s, ctx: ctx, client: client}
	defer w.leave()
	if err := w.pause(0); err != nil {
		return err
	}
	err := f(func() error {
		if used := time.Since(w.begun); used > workSlice {
			return w.pause(used)
		}
		return nil
	})
	s.work.charge(client, time.Since(w.begun))
	return err
}

// A worker is a call of Work.
type worker struct {
	s      *Scheduler
	ctx    context.Context
	client string
	begun  time.Time // its slice
	place  bool      // it has one of work.heavy
}

func (w *worker) leave() {
	if w.place {
		w.place = false
		<-w.s.work.heavy
	}
}

// pause charges the client for what it has used, and begins a slice when it may.
func (w *worker) pause(used time.Duration) error {
	w.leave()
	for {
		heavy, wait, idle := w.s.work.charge(w.client, used)
		switch {
		case wait > 0:
			if err := w.rest(wait, idle); err != nil {
				return err
			}
			used = 0
			continue
		case heavy:
			select {
			case w.s.work.heavy <- struct{}{}:
				w.place = true
			case <-w.s.done:
				return ErrClosed
			case <-w.ctx.Done():
			}
		}
		w.begun = time.Now()
		return w.ctx.Err()
	}
}

// rest waits for a time, or until no step runs.
func (w *worker) rest(d time.Duration, idle <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-idle:
	case <-w.s.done:
		return ErrClosed
	case <-w.ctx.Done():
	}
	return w.ctx.Err()
}
