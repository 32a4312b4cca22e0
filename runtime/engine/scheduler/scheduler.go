//go:build unix

// Package scheduler lets many clients share one engine: jobs wait in a bounded
// queue, are admitted by urgency and fairness, and get what each step of the
// engine gives them. One goroutine owns the engine.
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

// Errors of jobs that were not done.
var (
	ErrFull   = errors.New("the queue is full")
	ErrWaited = errors.New("the request waited too long in the queue")
	ErrClosed = errors.New("the service is shutting down")
)

// Options of a scheduler.
type Options struct {
	Queue     int           // most jobs that wait; 0: 128
	QueueTime time.Duration // how long a job may wait; 0: a minute
	Turn      time.Duration // how long a job runs at least before it makes way for one of another client; 0: 100 ms
	Vocab     int           // logits of a row that mean a token
	Metrics   *Metrics      // nil: not measured
	Log       *slog.Logger  // hears of bugs, with their stacks; nil: nobody does

	Decided func(what string, args map[string]any) // hears of decisions, for traces; nil: nobody does
}

// A Job says who asks and how urgent it is.
type Job struct {
	Client   string // jobs of one client share what a client may get
	User     string // of the client: its jobs share what a user of the client may get
	Priority int    // smaller is more urgent
	Prefixes string // whose prefixes may be reused: those of jobs with the same
}

// A Scheduler runs jobs on an engine.
type Scheduler struct {
	opt  Options
	eng  *engine.Engine
	out  int // index of the logits among the engine's outputs, or -1
	wake chan struct{}
	done chan struct{} // closed when the loop has ended

	mu       sync.Mutex
	waiting  []*entry
	turns    map[owner]time.Time // when each had its last
	running  int
	draining bool
	stopped  bool

	flush *flush // of the step whose results are being handed on

	work *work

	lost   int64    // sequences that were preempted, as far as the trace knows
	live   []*entry // of the loop alone
	owners map[engine.ID]*entry
}

// A task is what a kind of job does with the engine.
type task interface {
	slots() int  // most sequences at once
	tokens() int // of the prompt
	// start adds the first query.
	start(x *access) error
	// take reads a result; tasks of one step run side by side.
	take(r engine.Result) error
	// apply changes the engine as take found; done: nothing is left to do.
	apply(x *access) (done bool, err error)
	// end tells the client that nothing follows. err is nil when all was done.
	end(err error)
}

// An entry is a task in the queue or at work.
type entry struct {
	Job
	task
	ctx     context.Context
	arrived time.Time
	since   time.Time       // when it came, became live, or made way
	begun   bool            // it was live before
	resumed bool            // it made way, and has not gone on since: it may have to compute again what others needed the pages of
	ids     []engine.ID     // its sequences
	results []engine.Result // of this step
	err     error
}

// New starts a scheduler. The engine is its own from now on, until Close.
func New(eng *engine.Engine, opt Options) *Scheduler {
	if opt.Queue == 0 {
		opt.Queue = 128
	}
	if opt.QueueTime == 0 {
		opt.QueueTime = time.Minute
	}
	if opt.Turn == 0 {
		opt.Turn = usualTurn
	}
	s := &Scheduler{
		opt: opt, eng: eng, out: eng.Output("logits"), wake: make(chan struct{}, 1), done: make(chan struct{}),
		owners: map[engine.ID]*entry{}, turns: map[owner]time.Time{}, work: newWork(eng.Options().Threads),
	}
	go s.loop()
	return s
}

// usualTurn is how long a job runs before it makes way. Measured on SmolLM2, a client
// that asks for 8 tokens beside another one's jobs of 16 sequences, medians of two
// rounds: with 25 ms its answers take 50 ms and all together get 614 tokens/s, with
// 100 ms 95 and 680, with 400 ms 395 and 812.
const usualTurn = 100 * time.Millisecond

// submit puts a task into the queue.
func (s *Scheduler) submit(ctx context.Context, j Job, t task) error {
	if n := s.eng.Options().MaxSeqs; t.slots() > n {
		return fmt.Errorf("%d sequences at once are asked for, this service runs at most %d", t.slots(), n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining || s.stopped:
		return ErrClosed
	case !s.room(j.Client):
		return ErrFull
	}
	now := time.Now()
	s.waiting = append(s.waiting, &entry{Job: j, task: t, ctx: ctx, arrived: now, since: now})
	s.notify()
	return nil
}

// notify lets the loop look again.
func (s *Scheduler) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Drain refuses new jobs and waits until the others are done, or ctx ends.
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

// Close ends every job with ErrClosed and waits for the step that runs.
func (s *Scheduler) Close() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.notify()
	<-s.done
}

// Load is how many jobs wait and how many run.
func (s *Scheduler) Load() (waiting, running int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting), s.running
}

// loop runs steps as long as there is something to do. It keeps its thread, which
// is one of those that compute: another one might wake on the processor of a
// third.
func (s *Scheduler) loop() {
	defer close(s.done)
	runtime.LockOSThread()
	for {
		if s.closing() {
			s.eng.Drain()
			return
		}
		s.reapExpired()
		if len(s.live) == 0 {
			if waiting, _ := s.Load(); waiting == 0 {
				s.eng.Drain()
				s.work.setBusy(false)
				<-s.wake
				if s.out >= 0 { // an encoder generates nothing
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
			<-s.wake
			continue
		}
		if len(results) == 0 {
			s.endAll(errors.New("bug: jobs are live, but the engine has nothing to compute"))
			continue
		}
		s.opt.Metrics.observeEngine(s.eng.Stats()) // before a client hears of the step
		s.flush = newFlush(s.eng.Options().Threads)
		s.step(results)
		s.opt.Metrics.observeEngine(s.eng.Stats())
		s.flush.wait(took)
	}
}

// batchingWindow is how long a request waits for others while nothing runs.
// Measured on SmolLM2, 16 clients that ask in waves, 25 interleaved pairs: without
// it 0.98 times the tokens/s, and the p99 of ITL is 17 instead of 11 ms; one
// client's TTFT stays 26 ms.
const batchingWindow = time.Millisecond

// awaitBatch waits, while nothing runs, for more requests of a burst, until a
// batching window passes without any or as many as can run have come. One that
// starts ahead of the others generates beside their prompts, and ends before them.
func (s *Scheduler) awaitBatch(most int, wait func(time.Duration)) {
	for last := 0; ; {
		waiting, _ := s.Load()
		if waiting == last || waiting >= most {
			return
		}
		last = waiting
		wait(batchingWindow)
	}
}

// closing ends everything once Close was called.
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

// reapExpired ends jobs whose clients have gone, and those that waited too long.
func (s *Scheduler) reapExpired() {
	for _, e := range s.live {
		if e.err == nil {
			e.err = e.ctx.Err()
		}
	}
	s.retire()
	s.mu.Lock()
	defer s.mu.Unlock()
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

// retire ends the live jobs that have an error.
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

// errFinished marks a job that is done.
var errFinished = errors.New("finished")

// release removes a job's sequences from the engine.
func (s *Scheduler) release(e *entry) {
	for _, id := range e.ids {
		s.eng.Remove(id)
		delete(s.owners, id)
	}
	e.ids = nil
}

func (s *Scheduler) endAll(err error) {
	for _, e := range s.live {
		e.err = err
	}
	s.retire()
}
