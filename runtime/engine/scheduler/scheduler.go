//go:build unix

// Package scheduler runs the jobs of many clients on one engine. Jobs wait in a bounded
// queue and are admitted in the order of package policy; after each step of the engine
// they receive their results. One goroutine owns the engine.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
)

// Errors of jobs that the scheduler did not run.
var (
	ErrFull   = errors.New("the queue is full")
	ErrWaited = errors.New("the request waited too long in the queue")
	ErrClosed = errors.New("the service is shutting down")
)

// Options configure a Scheduler.
type Options struct {
	Queue     int           // maximum waiting jobs; 0: 128
	QueueTime time.Duration // maximum time that a job waits to be admitted; 0: 1 minute
	MinRun    time.Duration // a job runs at least so long before it is suspended for one of another client; 0: 100 ms
	Vocab     int           // number of logits that stand for a token; a row may have more
	Metrics   *Metrics      // nil: no metrics
	Log       *slog.Logger  // receives panics of jobs, with their stacks, and clients that wait long; nil: none are logged

	Decided func(what string, args map[string]any) // called with each scheduling decision, for traces; nil: none
}

// A Job identifies the client of a request and its priority.
type Job struct {
	Client      string   // fair sharing is among clients, then among the users of a client
	User        string   // a user of the client
	Priority    int      // smaller is more urgent
	PrefixScope string   // the prefix cache is shared only among jobs with the same PrefixScope
	Adapter     *Adapter // nil: none
	Request     *Request // nil: the client's waiting is not logged

	Charge func(tokens int) // called with the tokens that were computed for the job, after each step; must not block; may be nil
}

// A Scheduler runs jobs on an engine.
type Scheduler struct {
	opt  Options
	eng  *engine.Engine
	out  int // index of the logits among the engine's outputs, or -1
	wake chan struct{}
	done chan struct{} // closed when the loop ends

	mu       sync.Mutex
	waiting  []*entry
	admitted map[owner]time.Time // time of the last admission of each
	running  int
	draining bool
	stopped  bool

	callsMu sync.Mutex
	calls   []func() error // see between

	flush *flush // flush of the last step's events

	work *work

	lost   int64    // Stats.Preempted as last reported to the trace
	live   []*entry // used only by the loop
	owners map[engine.ID]*entry
}

// A task is the part of a job that depends on its kind.
type task interface {
	slots() int  // maximum concurrent sequences
	tokens() int // prompt tokens
	// start adds the first query to the engine.
	start(x *access) error
	// take reads a result; tasks of one step run concurrently.
	take(r engine.Result) error
	// apply changes the engine according to the results that take has read; done means
	// that the job is finished.
	apply(x *access) (done bool, err error)
	// end sends the client the end of the job; err is nil if it finished.
	end(err error)
}

// An entry is a job in the queue or a live one.
type entry struct {
	Job
	task
	ctx      context.Context
	arrived  time.Time
	since    time.Time   // when it arrived, was admitted or suspended
	begun    bool        // it was admitted before
	resumed  bool        // it was resumed and has no result since; it may have to recompute evicted pages
	ready    bool        // its prompt is computed
	answered bool        // and its first token is chosen
	ids      []engine.ID // its sequences
	prompt   progress
	results  []engine.Result // of this step
	err      error
}

// New starts a scheduler, which owns the engine until Close.
func New(eng *engine.Engine, opt Options) *Scheduler {
	if opt.Queue == 0 {
		opt.Queue = 128
	}
	if opt.QueueTime == 0 {
		opt.QueueTime = time.Minute
	}
	if opt.MinRun == 0 {
		opt.MinRun = defaultMinRun
	}
	s := &Scheduler{
		opt: opt, eng: eng, out: eng.Output("logits"), wake: make(chan struct{}, 1), done: make(chan struct{}),
		owners: map[engine.ID]*entry{}, admitted: map[owner]time.Time{}, work: newWork(eng.Options().Threads),
	}
	go s.loop()
	return s
}

// defaultMinRun is the default of Options.MinRun. Measured on SmolLM2 with a client
// that requests 8 tokens beside another client's jobs of 16 sequences, medians of two
// rounds. With 25 ms, its answers take 50 ms and the total throughput is 614 tokens/s;
// with 100 ms, 95 ms and 680; with 400 ms, 395 ms and 812.
const defaultMinRun = 100 * time.Millisecond

// submit queues a task.
func (s *Scheduler) submit(ctx context.Context, j Job, t task) error {
	if n := s.eng.Options().MaxSeqs; t.slots() > n {
		return fmt.Errorf("the request needs %d concurrent sequences; this service runs at most %d", t.slots(), n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining || s.stopped:
		return ErrClosed
	case !s.room(j.Client):
		return ErrFull
	}
	if j.Adapter != nil {
		j.Adapter.Hold()
	}
	now := time.Now()
	s.waiting = append(s.waiting, &entry{Job: j, task: t, ctx: ctx, arrived: now, since: now})
	s.notify()
	return nil
}

// notify wakes the loop.
func (s *Scheduler) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Drain refuses new jobs and waits until all others have ended, or ctx is done.
func (s *Scheduler) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for {
		if waiting, running := s.Load(); waiting+running == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return nil
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Close ends every job with ErrClosed and waits for the current step.
func (s *Scheduler) Close() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.notify()
	<-s.done
}

// Load returns the numbers of waiting and of running jobs.
func (s *Scheduler) Load() (waiting, running int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting), s.running
}

// loop runs steps while there are live jobs. It locks its OS thread, which is a worker
// thread of the model: a goroutine on another thread could wake up on the core of
// another worker.
func (s *Scheduler) loop() {
	defer close(s.done)
	runtime.LockOSThread()
	for {
		if s.closing() {
			s.eng.Drain()
			return
		}
		s.call()
		s.reapExpired()
		if len(s.live) == 0 {
			if waiting, _ := s.Load(); waiting == 0 {
				s.eng.Drain()
				s.work.setBusy(false)
				<-s.wake
				if s.out >= 0 { // encoders do not decode
					s.awaitBatch(s.eng.Options().MaxSeqs, time.Sleep)
				}
			}
			s.reapExpired()
		}
		s.catchUp()
		s.admit()
		if len(s.live) == 0 {
			continue
		}
		s.work.setBusy(true)
		begun := time.Now()
		results, err := s.eng.Infer(context.Background())
		took := time.Since(begun)
		s.preempted()
		if err != nil {
			s.endAll(err)
			continue
		}
		if len(results) == 0 && s.allLate() {
			s.work.setBusy(false)
			select {
			case <-s.wake:
			case <-time.After(time.Second): // jobs may have expired
			}
			continue
		}
		if len(results) == 0 {
			s.endAll(errors.New("bug: jobs are live, but the engine has nothing to compute"))
			continue
		}
		s.opt.Metrics.observeEngine(s.eng.Stats()) // before a client receives the step's events
		s.flush = newFlush(s.eng.Options().Threads)
		s.step(results)
		s.opt.Metrics.observeEngine(s.eng.Stats())
		s.flush.wait(took)
	}
}

// batchingWindow is the time that a request which arrives while nothing runs waits for
// others. Measured on SmolLM2 with 16 clients that send bursts, 25 interleaved pairs:
// without it, 0.98 times the tokens/s, and a p99 ITL of 17 instead of 11 ms. A single
// client's TTFT stays 26 ms.
const batchingWindow = time.Millisecond

// awaitBatch waits, while nothing runs, until no further request arrives within a
// batching window, or as many wait as can run. A request that starts ahead of the
// others of its burst decodes beside their prefill and ends before them.
func (s *Scheduler) awaitBatch(limit int, wait func(time.Duration)) {
	for last := 0; ; {
		waiting, _ := s.Load()
		if waiting == last || waiting >= limit {
			return
		}
		last = waiting
		wait(batchingWindow)
	}
}

// closing ends all jobs once Close was called, and reports whether it was.
func (s *Scheduler) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		return false
	}
	for _, e := range s.waiting {
		s.release(e)
		e.end(ErrClosed)
	}
	s.waiting = nil
	for _, e := range s.live {
		s.release(e)
		e.end(ErrClosed)
	}
	s.live, s.running = nil, 0
	return true
}

// reapExpired ends jobs with a done context, and those that waited longer than
// QueueTime.
func (s *Scheduler) reapExpired() {
	for _, e := range s.live {
		if e.err == nil {
			e.err = e.ctx.Err()
		}
	}
	s.retire()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.reportWaiting(time.Now())
	kept := s.waiting[:0]
	for _, e := range s.waiting {
		switch {
		case e.ctx.Err() != nil:
			s.release(e)
			e.end(e.ctx.Err())
		case !e.begun && time.Since(e.arrived) > s.opt.QueueTime:
			s.decided("waited too long", e, nil)
			e.end(ErrWaited)
		default:
			kept = append(kept, e)
		}
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
}

// retire ends the live jobs that have an error, errFinished included.
func (s *Scheduler) retire() {
	kept := s.live[:0]
	for _, e := range s.live {
		if e.err == nil {
			kept = append(kept, e)
			continue
		}
		s.release(e)
		if errors.Is(e.err, errFinished) {
			s.decided("finished", e, nil)
			e.end(nil)
		} else {
			s.logPanic(e.err)
			s.decided("ended", e, e.err)
			e.end(e.err)
		}
	}
	clear(s.live[len(kept):])
	s.live = kept
	s.mu.Lock()
	s.running = len(kept)
	s.mu.Unlock()
}

// errFinished marks a job that is finished.
var errFinished = errors.New("finished")

// release removes a job's sequences from the engine.
func (s *Scheduler) release(e *entry) {
	for _, id := range e.ids {
		s.eng.Remove(id)
		delete(s.owners, id)
	}
	e.ids = nil
}

// endAll ends all live jobs with an error.
func (s *Scheduler) endAll(err error) {
	for _, e := range s.live {
		e.err = err
	}
	s.retire()
}
