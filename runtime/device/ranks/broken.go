//go:build unix

package ranks

import (
	"errors"
	"sync"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A Group is a device that consists of several ranks.
type Group interface {
	device.Device
	Status
}

// Status reports the state of the ranks apart from their steps.
type Status interface {
	// Broken returns a channel that is closed when a rank is lost. No step can be
	// computed afterwards; Why returns the cause.
	Broken() <-chan struct{}
	// Why returns the error that ended the group's work, or nil.
	Why() error
	// Counts returns the communication volume of the ranks in this process so far.
	Counts() []Counts
}

// Counts is the communication volume of a rank. Rank 0 of a job of processes also sends the
// steps to the other ranks, and receives the results.
type Counts struct {
	comm.Counts
	Commanded int64 // bytes of steps and copies sent to all other ranks
	Received  int64 // bytes of results
}

// Alone is the Status of a model that is not partitioned: it never breaks and sends
// nothing.
type Alone struct{}

// Broken returns nil, a channel that is never closed.
func (Alone) Broken() <-chan struct{} { return nil }

// Why returns nil.
func (Alone) Why() error { return nil }

// Counts returns nil.
func (Alone) Counts() []Counts { return nil }

// A breakage records the error that ended the work of the group.
type breakage struct {
	mu     sync.Mutex
	why    error
	broken chan struct{}
}

func newBreakage() breakage { return breakage{broken: make(chan struct{})} }

// Broken returns a channel that is closed when a rank is lost; Why returns the cause.
func (b *breakage) Broken() <-chan struct{} { return b.broken }

// Why returns the error that ended the group's work, or nil.
func (b *breakage) Why() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// fail records the first error and returns it.
func (b *breakage) fail(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil {
		b.why = err
		close(b.broken)
	}
	return b.why
}

// failed records err if it means that a rank is lost, and returns the error to report.
func (b *breakage) failed(err error) error {
	var unreached *comm.RankError
	if errors.As(err, &unreached) {
		return b.fail(err)
	}
	return err
}
