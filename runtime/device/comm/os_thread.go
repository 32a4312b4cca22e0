//go:build unix

package comm

import (
	"runtime"
	"time"
)

// A Thread is one of the system's, on which a rank's calls are made: MPI and
// CUDA want theirs from one.
type Thread struct{ jobs chan func() }

func newThread() Thread {
	t := Thread{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		for f := range t.jobs {
			f()
		}
	}()
	return t
}

// Do runs f on the thread and waits for it. Not from within f.
func (t Thread) Do(f func()) {
	done := make(chan struct{})
	t.jobs <- func() { defer close(done); f() }
	<-done
}

func (t Thread) stop() { close(t.jobs) }

// A Stopwatch is how long a wait has lasted. An interval in which nobody looked
// counts for little: the process may have been stopped.
type Stopwatch struct {
	last   time.Time
	waited time.Duration
}

// Elapsed gives the time since the first look.
func (w *Stopwatch) Elapsed() time.Duration {
	now := time.Now()
	if !w.last.IsZero() {
		w.waited += min(now.Sub(w.last), 100*time.Millisecond)
	}
	w.last = now
	return w.waited
}
