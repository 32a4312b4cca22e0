//go:build unix

package scheduler

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// step passes the results to the jobs and applies their changes to the engine. While
// reading results is cheap, it handles one job after another, so that the first
// clients' events are sent while tokens of other jobs are chosen.
func (s *Scheduler) step(results []engine.Result) {
	list := s.received(results)
	if s.eng.BatchesDrafts() {
		forEach(list, (*entry).takeSafely, func(*entry) {})
		s.draftAll(list)
		for _, e := range list {
			s.apply(e)
		}
	} else {
		forEach(list, func(e *entry) {
			e.takeSafely()
			if draft := e.drafting(); draft != nil {
				draft()
			}
		}, s.apply)
	}
	s.retire()
}

// A constrained task has sequences that skip steps while they wait for a token mask.
type constrained interface {
	late() bool
	catchUp() (picked bool, err error)
}

// catchUp continues jobs with token masks that have arrived.
func (s *Scheduler) catchUp() {
	s.flush = nil // the last step's flush is over
	for _, e := range s.live {
		t, ok := e.task.(constrained)
		if !ok || e.err != nil {
			continue
		}
		picked := false
		e.err = safely(func() (err error) { picked, err = t.catchUp(); return err })
		if picked && e.err == nil {
			s.apply(e)
		}
	}
	s.retire()
}

// allLate reports whether every live job waits for a token mask.
func (s *Scheduler) allLate() bool {
	return !slices.ContainsFunc(s.live, func(e *entry) bool { return !e.late() })
}

// late reports whether a job waits for a token mask.
func (e *entry) late() bool {
	t, ok := e.task.(constrained)
	return ok && t.late()
}

// received assigns the results to their jobs and lists these jobs.
func (s *Scheduler) received(results []engine.Result) (list []*entry) {
	for _, r := range results {
		e := s.owners[r.ID]
		if e == nil {
			panic(fmt.Sprintf("bug: query %d belongs to no job", r.ID))
		}
		if len(e.results) == 0 {
			list = append(list, e)
		}
		e.results = append(e.results, r)
		s.count(e, e.prompt.advance(r), 0)
		e.resumed = e.resumed && !r.Ready
		e.ready = e.ready || r.Ready
	}
	return list
}

// apply applies a job's changes to the engine.
func (s *Scheduler) apply(e *entry) {
	e.results = e.results[:0]
	e.answered = e.answered || e.ready && !e.late()
	if e.err != nil {
		return
	}
	done, err := e.apply(&access{s, e})
	if err != nil {
		e.err = err
	} else if done {
		e.err = errFinished
	}
}

// wakeTime is about the time to wake other goroutines that help with the jobs.
const wakeTime = 100 * time.Microsecond

// forEach calls do for every job, and after it calls serial, for one job at a time. If
// the calls of do for the remaining jobs are expected to take longer than wakeTime,
// they run in parallel. The jobs handled so far predict it, because the cost varies:
// greedy sampling reads one number, other methods scan the whole vocabulary.
func forEach(list []*entry, do, serial func(*entry)) {
	var spent time.Duration
	for i, e := range list {
		begun := time.Now()
		do(e)
		spent += time.Since(begun)
		serial(e)
		rest := list[i+1:]
		if spent/time.Duration(i+1)*time.Duration(len(rest)) > wakeTime {
			parallel(rest, do)
			for _, e := range rest {
				serial(e)
			}
			return
		}
	}
}

// parallel calls do for every job on all cores.
func parallel(list []*entry, do func(*entry)) {
	var at atomic.Int64
	work := func() {
		for i := at.Add(1) - 1; int(i) < len(list); i = at.Add(1) - 1 {
			do(list[i])
		}
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(list)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// A drafting task drafts after all tasks have read their results.
type drafting interface {
	drafts() bool // reports whether draft has work
	draft()
}

// drafting returns the function that makes a job's drafts, or nil if the job needs
// none. A panic of the function becomes the job's error.
func (e *entry) drafting() func() {
	t, ok := e.task.(drafting)
	if !ok || e.err != nil || !t.drafts() {
		return nil
	}
	return func() { e.err = safely(func() error { t.draft(); return nil }) }
}

// draftAll makes the jobs' drafts with Engine.DraftBatch.
func (s *Scheduler) draftAll(list []*entry) {
	var drafts []func()
	for _, e := range list {
		if draft := e.drafting(); draft != nil {
			drafts = append(drafts, draft)
		}
	}
	if len(drafts) > 0 {
		s.eng.DraftBatch(drafts)
	}
}

// takeSafely passes a job its results.
func (e *entry) takeSafely() {
	e.err = safely(func() error {
		for _, r := range e.results {
			if err := e.take(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// safely calls f and turns a panic into an error with the stack, so that one request
// does not end the others.
func safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	return f()
}

// A panicError is a panic that ended one job, which is a bug. Clients receive the
// value, the log also the stack.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("bug: %v", e.value) }

// Stack returns the stack of the goroutine that panicked.
func (e *panicError) Stack() []byte { return e.stack }

// logPanic logs a job's panic, if err is one.
func (s *Scheduler) logPanic(err error) {
	if p := (*panicError)(nil); errors.As(err, &p) && s.opt.Log != nil {
		s.opt.Log.Error("panic", "panic", fmt.Sprint(p.value), "stack", string(p.stack))
	}
}

// An access is a job's interface to the engine. It records the job's sequences, which
// are removed when the job ends.
type access struct {
	s *Scheduler
	e *entry
}

func (x *access) add(q engine.Query) (engine.ID, error) {
	q.Priority, q.PrefixScope = x.e.Priority, x.e.PrefixScope
	if a := x.e.Adapter; a != nil {
		q.Adapter = a.loaded
	}
	id, err := x.s.eng.AddQuery(q)
	x.e.prompt = progress{id: id, length: len(q.Tokens), source: len(q.Source)}
	return x.own(id, err)
}

func (x *access) fork(id engine.ID) (engine.ID, error) {
	id, err := x.s.eng.Fork(id)
	return x.own(id, err)
}

func (x *access) own(id engine.ID, err error) (engine.ID, error) {
	if err == nil {
		x.e.ids = append(x.e.ids, id)
		x.s.owners[id] = x.e
	}
	return id, err
}

// advance accepts a path of a sequence's draft, commits the token after it, and
// proposes the next draft.
func (x *access) advance(id engine.ID, path []int, token int32, draft speculate.Tree) error {
	if err := x.s.eng.Advance(id, path, token); err != nil {
		return err
	}
	if draft.Len() == 0 {
		return nil
	}
	return x.s.eng.Propose(id, draft)
}

func (x *access) commit(id engine.ID, token int32) error { return x.s.eng.Commit(id, token) }

func (x *access) remove(id engine.ID) {
	x.s.eng.Remove(id)
	delete(x.s.owners, id)
	x.e.ids = slices.DeleteFunc(x.e.ids, func(o engine.ID) bool { return o == id })
}
