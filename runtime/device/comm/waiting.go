//go:build unix

package comm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// When a rank prints what it waits for: soon enough for someone who watches the start,
// and rarely enough for a log.
const (
	sayFirst = 5 * time.Second
	sayEvery = 30 * time.Second
)

// A wait describes what a rank waits for.
type wait struct {
	mu   sync.Mutex
	text string
	last string // what else has happened
}

// note sets what follows the description.
func (w *wait) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = "; " + fmt.Sprintf(format, args...)
}

// noted returns it, or "".
func (w *wait) noted() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// set sets the description; err is the last error, or nil.
func (w *wait) set(err error, format string, args ...any) {
	text := fmt.Sprintf(format, args...) + advice(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = text
}

// report prints the description now and then until ctx ends.
func (w *wait) report(ctx context.Context, m *Member) {
	for pause := cmp.Or(m.sayFirst, sayFirst); m.Say != nil; pause = cmp.Or(m.sayEvery, sayEvery) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		w.mu.Lock()
		text, last := w.text, w.last
		w.mu.Unlock()
		if text != "" && ctx.Err() == nil {
			m.Say("%s%s", text, last)
		}
	}
}

// advice returns the likely fix of an error of a connection to rank 0, or "".
func advice(err error) string {
	var name *net.DNSError
	var late net.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &name):
		return "; this machine cannot resolve the name: set MASTER_ADDR to the address of rank 0's machine"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "; nothing listens there: start rank 0, or correct MASTER_ADDR and MASTER_PORT"
	case errors.As(err, &late) && late.Timeout():
		return "; nothing answers: check MASTER_ADDR and the firewall between the machines"
	}
	return "; set the same MASTER_ADDR and MASTER_PORT on all ranks"
}
