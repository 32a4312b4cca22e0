//go:build unix

package ranks

import (
	"errors"
	"sync"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A Group is a device that several ranks are.
type Group interface {
	device.Device
	Status
}

// Status is what a group says beside its steps.
type Status interface {
	// Broken is closed when a rank could not be reached, after which no step can be
	// computed; Why says which.
	Broken() <-chan struct{}
	// Why is what ended the work of the ranks, nil: nothing has.
	Why() error
	// Counts are what the ranks of this process have sent so far.
	Counts() []comm.Counts
}

// Alone is the Status of a model that is whole: nothing breaks, nothing is sent.
type Alone struct{}

// Broken is never closed.
func (Alone) Broken() <-chan struct{} { return nil }

// Why is nil.
func (Alone) Why() error { return nil }

// Counts are none.
func (Alone) Counts() []comm.Counts { return nil }

// A breakage is what ended the work of the ranks together.
type breakage struct {
	mu     sync.Mutex
	why    error
	broken chan struct{}
}

func newBreakage() breakage { return breakage{broken: make(chan struct{})} }

// Broken is closed when a rank could not be reached; Why says which.
func (b *breakage) Broken() <-chan struct{} { return b.broken }

// Why is what ended the work, nil: nothing has.
func (b *breakage) Why() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// fail notes the first error, and gives it.
func (b *breakage) fail(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil {
		b.why = err
		close(b.broken)
	}
	return b.why
}

// failed ends the work of the ranks where one of them could not be reached.
func (b *breakage) failed(err error) error {
	var unreached *comm.RankError
	if errors.As(err, &unreached) {
		return b.fail(err)
	}
	return err
}
