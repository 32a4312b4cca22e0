//go:build unix

package scheduler

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// flushFraction limits the wait for the last step's events to be written, as a fraction
// of the step's time. With it, two threads on two CPUs and interleaved runs, the 90th
// percentile of the ITL fell from 7.7 to 4.9 ms for one client and from 23.8 to 21.4
// for 16; see docs/benchmarks/serving.md.
const flushFraction = 1. / 8

// A flush waits until the clients that received events of a step have written them and
// wait for more. If the model's threads use every core, the goroutine that writes
// events would run only when it preempts a worker thread of the next step. The event
// would be up to a scheduler tick (4 ms) late, and all workers would wait for the
// preempted one. A nil flush does not wait.
type flush struct {
	left atomic.Int32 // clients, plus one for the scheduler until it waits
	all  chan struct{}
}

// newFlush returns the flush of a step, or nil if the model's threads leave a core
// free.
func newFlush(threads int) *flush {
	if threads < runtime.GOMAXPROCS(0) {
		return nil
	}
	d := &flush{all: make(chan struct{})}
	d.left.Store(1)
	return d
}

// add counts a client. It reports whether the flush waits for it.
func (d *flush) add() bool {
	if d != nil {
		d.left.Add(1)
	}
	return d != nil
}

// done marks one client, or the scheduler, as done.
func (d *flush) done() {
	if d != nil && d.left.Add(-1) == 0 {
		close(d.all)
	}
}

// wait returns when all clients are done, or after flushFraction of the step's time, so
// that slow clients do not delay the next step.
func (d *flush) wait(step time.Duration) {
	if d == nil || d.left.Load() == 1 {
		return
	}
	d.done()
	limit := time.NewTimer(time.Duration(flushFraction * float64(step)))
	defer limit.Stop()
	select {
	case <-d.all:
	case <-limit.C:
	}
	cpu.Yield() // let clients on this machine read, for the same reason
}
