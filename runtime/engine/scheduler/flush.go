//go:build unix

package scheduler

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// flushShare is how long the next step waits at most for the events of the
// last one to be on their way, in steps. With it and two threads on two CPUs the
// 90th percentile of the inter-token latency fell from 7.7 to 4.9 ms for one
// client and from 23.8 to 21.4 for 16, in interleaved runs; see docs/benchmarks/serving.md.
const flushShare = 1. / 8

// A flush waits until the clients that a step gave events to have taken them,
// written them, and wait again. Where the model's threads take every processor,
// who brings the events would else get one only when a thread of the next step
// loses it: the event comes late by up to a tick of the system's clock (4 ms), and
// the other threads of the step wait for the one that was held up. A nil
// flush waits for nobody.
type flush struct {
	left atomic.Int32 // clients, and the scheduler until it waits
	all  chan struct{}
}

// newFlush makes the flush of a step; nil: processors are left beside the
// step's threads.
func newFlush(threads int) *flush {
	if threads < runtime.GOMAXPROCS(0) {
		return nil
	}
	d := &flush{all: make(chan struct{})}
	d.left.Store(1)
	return d
}

// add counts a client, and says whether anybody waits.
func (d *flush) add() bool {
	if d != nil {
		d.left.Add(1)
	}
	return d != nil
}

// done says that a client, or the scheduler, is through.
func (d *flush) done() {
	if d != nil && d.left.Add(-1) == 0 {
		close(d.all)
	}
}

// wait ends when all clients are through, or after a share of the time that the
// step took: one that is slow to read holds nobody up.
func (d *flush) wait(step time.Duration) {
	if d == nil || d.left.Load() == 1 {
		return
	}
	d.done()
	limit := time.NewTimer(time.Duration(flushShare * float64(step)))
	defer limit.Stop()
	select {
	case <-d.all:
	case <-limit.C:
	}
	cpu.Yield() // to clients on this machine, for the same reason
}
