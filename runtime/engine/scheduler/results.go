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

// step hands the results to the jobs, and lets these change the engine: one job
// after the other where that takes no time, so that the first clients' events are
// on their way while others' tokens are chosen.
func (s *Scheduler) step(results []engine.Result) {
	list := s.received(results)
	if s.eng.DraftsTogether() {
		each(list, (*entry).takeSafely, func(*entry) {})
		s.draftAll(list)
		for _, e := range list {
			s.apply(e)
		}
	} else {
		each(list, func(e *entry) {
			e.takeSafely()
			if draft := e.drafting(); draft != nil {
				draft()
			}
		}, s.apply)
	}
	s.retire()
}

// A constrained task has sequences that sit steps out, because what they need
// beside the model is late.
type constrained interface {
	late() bool
	catchUp() (picked bool, err error)
}

// catchUp lets jobs go on for which what was late has come.
func (s *Scheduler) catchUp() {
	s.flush = nil // the last step's is over
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

// allLate says that nothing can be computed until something comes.
func (s *Scheduler) allLate() bool {
	return !slices.ContainsFunc(s.live, func(e *entry) bool {
		t, ok := e.task.(constrained)
		return !ok || !t.late()
	})
}

// received gives the results to their jobs and lists these.
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
		e.resumed = e.resumed && !r.Ready
	}
	return list
}

// apply lets a job change the engine, as it found in its results.
func (s *Scheduler) apply(e *entry) {
	e.results = e.results[:0]
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

// sharing is how long it takes to wake others who help with the jobs.
const sharing = 100 * time.Microsecond

// each does something for every job, and behind it something else, which is done
// for one at a time. The first is shared out to processors where it would take
// longer than sharing out, by what it took for the first jobs: greedy choices are
// read off, others look at fifty thousand tokens.
func each(list []*entry, do, behind func(*entry)) {
	var spent time.Duration
	for i, e := range list {
		begun := time.Now()
		do(e)
		spent += time.Since(begun)
		behind(e)
		rest := list[i+1:]
		if spent/time.Duration(i+1)*time.Duration(len(rest)) > sharing {
			share(rest, do)
			for _, e := range rest {
				behind(e)
			}
			return
		}
	}
}

// share does all on all processors.
func share(list []*entry, do func(*entry)) {
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

// A drafting task drafts what may follow, once all tasks have read their results.
type drafting interface {
	drafts() bool // there is something to draft
	draft()
}

// drafting is what makes a job's draft, which may end in its error; nil: nothing
// to draft.
func (e *entry) drafting() func() {
	t, ok := e.task.(drafting)
	if !ok || e.err != nil || !t.drafts() {
		return nil
	}
	return func() { e.err = safely(func() error { t.draft(); return nil }) }
}

// draftAll lets the jobs draft where step does not: what drafts runs once for all
// of them.
func (s *Scheduler) draftAll(list []*entry) {
	var drafts []func()
	for _, e := range list {
		if draft := e.drafting(); draft != nil {
			drafts = append(drafts, draft)
		}
	}
	if len(drafts) > 0 {
		s.eng.Together(drafts)
	}
}

// takeSafely gives a job its results.
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

// safely turns a panic of one job into its error, with the stack, so that one
// request never ends the others.
func safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	return f()
}

// A panicError is a bug of this program that ended one job. Clients are told what
// it was; logs have the stack.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("bug: %v", e.value) }

// Stack is where the job panicked.
func (e *panicError) Stack() []byte { return e.stack }

// logPanic tells the log of a job's panic, if that is what ended it.
func (s *Scheduler) logPanic(err error) {
	if p := (*panicError)(nil); errors.As(err, &p) && s.opt.Log != nil {
		s.opt.Log.Error("panic", "panic", fmt.Sprint(p.value), "stack", string(p.stack))
	}
}

// An access is what a job may do with the engine: the sequences it makes are
// its own, and go when it ends.
type access struct {
	s *Scheduler
	e *entry
}

func (x *access) add(q engine.Query) (engine.ID, error) {
	q.Priority, q.Prefixes = x.e.Priority, x.e.Prefixes
	id, err := x.s.eng.AddQuery(q)
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

// advance accepts a path of a sequence's draft, commits the token behind it and
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
