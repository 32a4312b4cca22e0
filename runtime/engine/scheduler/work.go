//go:build unix

package scheduler

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Limits of a client's CPU time for work on its requests while steps use every core.
// Measured by script/attack --only '^(regex-fresh|text-cjk)$' on two cores, for a
// workFraction of 1/16, 1/8 and 1/4: the other client's median is 0.5 and 0.3 times
// that beside ordinary requests; its p99 beside texts of 4 MB is 209, 278 and 375 ms.
const (
	workSlice    = 500 * time.Microsecond // CPU time is charged in units of at least workSlice
	workBurst    = 20 * time.Millisecond  // capacity of a client's bucket
	workFraction = 1. / 8                 // refill rate of a client's bucket, in cores
	allFraction  = 1. / 4                 // refill rate of the bucket of all clients
)

// work limits the CPU time that requests spend outside the engine: tokenizing prompts,
// compiling grammars, computing token masks. While steps use every core, each client
// has a token bucket of CPU time, and all clients together have another. Work of a
// client with an empty bucket waits until the bucket refills or no step runs.
type work struct {
	mu      sync.Mutex
	spare   bool          // the model's threads leave a core free: no limits
	busy    bool          // a step runs or is about to
	idle    chan struct{} // closed when busy ends
	all     bucket
	clients map[string]*bucket
	heavy   chan struct{} // one slot per core, for clients that have used half of their burst
}

// A bucket is a token bucket of CPU time.
type bucket struct {
	left time.Duration
	at   time.Time // time of the last refill
}

func (b *bucket) fill(now time.Time, rate float64) {
	b.left = min(workBurst, b.left+time.Duration(rate*float64(now.Sub(b.at))))
	b.at = now
}

// wait returns the time until the bucket holds a slice again.
func (b *bucket) wait(rate float64) time.Duration {
	return max(0, time.Duration(float64(workSlice-b.left)/rate))
}

func newWork(threads int) *work {
	w := &work{spare: threads < runtime.GOMAXPROCS(0), idle: make(chan struct{}), clients: map[string]*bucket{}, heavy: make(chan struct{}, runtime.GOMAXPROCS(0)), all: bucket{workBurst, time.Now()}}
	close(w.idle)
	return w
}

// setBusy sets whether steps run from now on.
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

// maxBuckets bounds the number of clients with a bucket. Beyond it, full buckets are
// dropped.
const maxBuckets = 1024

// bucket returns a client's bucket, refilled. w.mu is held.
func (w *work) bucket(client string, now time.Time) *bucket {
	b := w.clients[client]
	if b == nil {
		if len(w.clients) >= maxBuckets {
			for name, b := range w.clients {
				if b.fill(now, workFraction); b.left == workBurst {
					delete(w.clients, name)
				}
			}
		}
		b = &bucket{workBurst, now}
		w.clients[client] = b
	}
	b.fill(now, workFraction)
	return b
}

// charge charges CPU time to a client. heavy reports whether the client has used more
// than half of its burst. A positive wait is the time until the client may continue;
// closing idle ends it early. While no step runs, no client waits, and buckets do not
// go below zero.
func (w *work) charge(client string, used time.Duration) (heavy bool, wait time.Duration, idle <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	b := w.bucket(client, now)
	w.all.fill(now, allFraction)
	if !w.busy {
		used = max(0, min(used, b.left, w.all.left))
	}
	b.left -= used
	w.all.left -= used
	if b.left > workBurst/2 { // clients with little work do not wait for others
		return false, 0, nil
	}
	if !w.busy || b.left > 0 && w.all.left > 0 {
		return true, 0, nil
	}
	return true, max(b.wait(workFraction), w.all.wait(allFraction)), w.idle
}

// Work runs f, which does work for a client's request concurrently with steps. f must
// call tick at least every 100 µs or so and return when tick returns an error. Work,
// and tick after each slice, block while the client's CPU time is used up. Of the
// clients with much work, at most one per core runs at a time.
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
	begun  time.Time // start of the current slice
	place  bool      // it holds a slot of work.heavy
}

func (w *worker) leave() {
	if w.place {
		w.place = false
		<-w.s.work.heavy
	}
}

// pause charges the used time to the client and starts a new slice when the client may
// continue.
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

// rest waits for d, or until no step runs.
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
