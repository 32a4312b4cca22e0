//go:build unix

package ranks

import "sync"

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
