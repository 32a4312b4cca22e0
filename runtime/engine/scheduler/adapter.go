//go:build unix

package scheduler

import (
	"context"
	"sync/atomic"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/engine"
)

// An Adapter is a LoRA adapter that a scheduler's engine has loaded.
type Adapter struct {
	s      *Scheduler
	loaded *engine.Adapter
	holds  atomic.Int64 // one until Unload, and one of each user
}

// Adapter returns an adapter that the engine had loaded before the scheduler was made.
func (s *Scheduler) Adapter(loaded *engine.Adapter) *Adapter {
	x := &Adapter{s: s, loaded: loaded}
	x.holds.Store(1)
	return x
}

// LoadAdapter packs an adapter and loads it between two steps; see engine.LoadAdapter.
func (s *Scheduler) LoadAdapter(ctx context.Context, a lora.Packer, bytes int64) (*Adapter, error) {
	a, err := s.eng.PackAdapter(a, bytes)
	if err != nil {
		return nil, err
	}
	x := s.Adapter(nil)
	failed := make(chan error, 1)
	s.between(func() (err error) {
		if err = ctx.Err(); err == nil {
			x.loaded, err = s.eng.LoadAdapter(a, bytes)
		}
		failed <- err
		return nil
	})
	select {
	case err := <-failed:
		if err != nil {
			return nil, err
		}
		return x, nil
	case <-s.done:
		return nil, ErrClosed
	}
}

// Unload unloads the adapter when its last user has released it. The caller starts no
// more users.
func (x *Adapter) Unload() { x.Release() }

// Hold keeps the adapter loaded until Release. Every job holds its own; a request with
// several jobs holds it until the last one.
func (x *Adapter) Hold() { x.holds.Add(1) }

// Release ends a Hold.
func (x *Adapter) Release() {
	if x.holds.Add(-1) == 0 {
		x.s.between(func() error { return x.s.eng.UnloadAdapter(x.loaded) })
	}
}

// between calls f between two steps, in the goroutine that owns the engine. It does not
// wait. After Close, f may not be called.
func (s *Scheduler) between(f func() error) {
	s.callsMu.Lock()
	s.calls = append(s.calls, f)
	s.callsMu.Unlock()
	s.notify()
}

// call calls the functions that wait for the end of a step.
func (s *Scheduler) call() {
	s.callsMu.Lock()
	calls := s.calls
	s.calls = nil
	s.callsMu.Unlock()
	for _, f := range calls {
		if err := f(); err != nil && s.opt.Log != nil {
			s.opt.Log.Error("an adapter was not unloaded", "error", err.Error())
		}
	}
	if len(calls) > 0 {
		s.opt.Metrics.observeEngine(s.eng.Stats())
	}
}

// end ends a job.
func (e *entry) end(err error) {
	e.task.end(err)
	if e.Adapter != nil {
		e.Adapter.Release()
	}
}
