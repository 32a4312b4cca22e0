package scheduler

import (
	"context"
	"sync"
)

// A mailbox hands events from the scheduler, which never waits, to a client,
// which may be slow. What it holds is bounded by what the job may generate.
type mailbox[T any] struct {
	mu     sync.Mutex
	list   []T
	closed bool
	err    error
	news   chan struct{}

	idle  bool   // the client has everything and waits
	flush *flush // that waits for the client to be idle again
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{news: make(chan struct{}, 1)} }

// put adds events, which d waits to be delivered where their client waits for
// them; nil: nobody does.
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

// close says that nothing follows; err tells why, nil that all is there.
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
