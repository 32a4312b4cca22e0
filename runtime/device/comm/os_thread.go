//go:build unix

package comm

import (
	"runtime"
	"time"
)

// A Thread is a locked OS thread for calls to MPI and CUDA, which must be made on one
// thread.
type Thread struct{ jobs chan func() }

func newThread() Thread {
	t := Thread{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for f := range t.jobs {
			f()
		}
	}()
	return t
}

// Do runs f on the thread and waits for it. f must not call Do.
func (t Thread) Do(f func()) {
	done := make(chan struct{})
	t.jobs <- func() { defer close(done); f() }
	<-done
}

func (t Thread) stop() { close(t.jobs) }

// A Stopwatch measures the duration of a wait. Long gaps between two calls of Elapsed
// count only for a short time, because the process may have been stopped.
type Stopwatch struct {
	last   time.Time
	waited time.Duration
}

// Elapsed returns the time since the first call.
func (w *Stopwatch) Elapsed() time.Duration {
	now := time.Now()
	if !w.last.IsZero() {
		w.waited += min(now.Sub(w.last), 100*time.Millisecond)
	}
	w.last = now
	return w.waited
}
