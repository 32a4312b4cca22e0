//go:build unix

package scheduler

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// deliveryShare is how long the next step waits at most for the events of the
// last one to be on their way, in steps.
const deliveryShare = 1. / 8

// firstPause is how long the next step waits for each client that got its first
// events, whose head both sides take longer over: without it the step after those
// of 16 clients that began together took twice as long as others.
const firstPause = 60 * time.Microsecond

// A delivery waits until the clients that a step gave events to have taken them,
// written them, and wait again. Where the model's threads take every processor,
// who brings the events would else get one only when a thread of the next step
// loses it: the event comes late by up to a tick of the system's clock (4 ms), and
// the other threads of the step wait for the one that was held up. A nil
// delivery waits for nobody.
type delivery struct {
	left   atomic.Int32 // clients, and the scheduler until it waits
	firsts int          // clients that got their first events
	all    chan struct{}
}

// newDelivery makes the delivery of a step; nil: processors are left beside the
// step's threads.
func newDelivery(threads int) *delivery {
	if threads < runtime.GOMAXPROCS(0) {
		return nil
	}
	d := &delivery{all: make(chan struct{})}
	d.left.Store(1)
	return d
}

// add counts a client, and says whether anybody waits.
func (d *delivery) add() bool {
	if d != nil {
		d.left.Add(1)
	}
	return d != nil
}

// done says that a client, or the scheduler, is through.
func (d *delivery) done() {
	if d != nil && d.left.Add(-1) == 0 {
		close(d.all)
	}
}

// wait ends when all clients are through, or after a share of the time that the
// step took: one that is slow to read holds nobody up.
func (d *delivery) wait(step time.Duration) {
	if d == nil || d.left.Load() == 1 {
		return
	}
	d.done()
	limit := time.NewTimer(time.Duration(deliveryShare * float64(step)))
	defer limit.Stop()
	select {
	case <-d.all:
	case <-limit.C:
	}
	if d.firsts > 0 {
		time.Sleep(time.Duration(d.firsts) * firstPause)
		return
	}
	cpu.Yield() // to clients on this machine, for the same reason
}
