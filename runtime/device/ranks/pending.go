//go:build unix

package ranks

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A pending step is a step that its ranks are computing.
type pending struct {
	step device.Step // a copy of the submitted step
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

// ended records that one part of the step has ended. A rank's own error takes
// precedence over errors of ranks that lost the connection to it.
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

// wait waits for the end of the step. A step may never end after the loss of a rank;
// then wait returns the error of why.
func (p *pending) wait(broken <-chan struct{}, why func() error) error {
	select {
	case <-p.done:
		return p.err
	case <-broken:
		return why()
	}
}
