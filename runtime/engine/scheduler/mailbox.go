package scheduler

import (
	"context"
	"sync"
)

// A mailbox passes events from the scheduler, which never blocks, to a client, which
// may be slow. Its size is bounded by the tokens that the job may generate.
type mailbox[T any] struct {
	mu     sync.Mutex
	list   []T
	closed bool
	err    error
	news   chan struct{}

	idle  bool   // the client has received everything and waits
	flush *flush // waits until the client is idle again
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{news: make(chan struct{}, 1)} }

// put adds events. If the client is idle, the flush d waits until it has received them;
// d may be nil.
func (m *mailbox[T]) put(d *flush, v ...T) {
	m.mu.Lock()
	if m.idle && d.add() {
		m.flush = d
	}
	m.idle = false
	m.list = append(m.list, v...)
	m.mu.Unlock()
	m.signal()
}

// close marks the end of the events; err is the reason, or nil after a complete result.
func (m *mailbox[T]) close(err error) {
	m.mu.Lock()
	if !m.closed {
		m.closed, m.err = true, err
	}
	m.mu.Unlock()
	m.signal()
}

func (m *mailbox[T]) signal() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// get waits for events and returns all that are there; none: the end.
func (m *mailbox[T]) get(ctx context.Context) ([]T, error) {
	for {
		m.mu.Lock()
		list, closed, err := m.list, m.closed, m.err
		m.list = nil
		if m.idle = len(list) == 0; m.idle {
			m.flush.done()
			m.flush = nil
		}
		m.mu.Unlock()
		if len(list) > 0 || closed && err == nil {
			return list, nil
		}
		if closed {
			return nil, err
		}
		select {
		case <-m.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
