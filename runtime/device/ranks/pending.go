//go:build unix

package ranks

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A pending step is one that its ranks compute.
type pending struct {
	step device.Step // as it was submitted
	left atomic.Int32
	done chan struct{}

	mu  sync.Mutex
	err error
}

func newPending(s *device.Step, parts int) *pending {
	p := &pending{step: *s, done: make(chan struct{})}
	p.left.Store(int32(parts))
	return p
}

// ended notes that one part of the step has ended. What stopped a rank itself
// says more than that others could not reach it.
func (p *pending) ended(err error) {
	if err != nil {
		p.mu.Lock()
		var unreached *comm.RankError
		if p.err == nil || errors.As(p.err, &unreached) && unreached.Err == nil {
			p.err = err
		}
		p.mu.Unlock()
	}
	if p.left.Add(-1) == 0 {
		close(p.done)
	}
}

// wait waits for a step's end. When a rank is lost, it may never end: then there
// is no other step, and why says which rank.
func (p *pending) wait(broken <-chan struct{}, why func() error) error {
	select {
	case <-p.done:
		return p.err
	case <-broken:
		return why()
	}
}
