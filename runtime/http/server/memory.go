//go:build unix

package server

import (
	"context"
	"net/http"
	"sync"
)

// memory bounds the bytes that all requests may use together, beside the model. A
// request reserves memory before it allocates it and releases it when it ends.
type memory struct {
	limit int64

	mu   sync.Mutex
	used int64
	held map[string]int64 // by client
}

func newMemory(limit int64) *memory { return &memory{limit: limit, held: map[string]int64{}} }

// take reserves n bytes for a client, or returns false. A client may hold at most as
// much as remains free, so that a single client gets at most half and others still find
// some (dynamic thresholds; Choudhury and Hahne 1998).
func (m *memory) take(client string, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[client]+n > m.limit-m.used-n {
		return false
	}
	m.held[client] += n
	m.used += n
	return true
}

func (m *memory) give(client string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
	if m.held[client] -= n; m.held[client] == 0 {
		delete(m.held, client)
	}
}

// A reservation is the memory reserved by a request.
type reservation struct {
	memory *memory
	client string

	mu    sync.Mutex
	bytes int64
}

// A reservationKey is the key of the reservation in a request's context.
type reservationKey struct{}

func (s *Server) reserve(ctx context.Context, client string) (context.Context, *reservation) {
	v := &reservation{memory: s.memory, client: client}
	return context.WithValue(ctx, reservationKey{}, v), v
}

// end releases the reservation.
func (v *reservation) end() { v.memory.give(v.client, v.bytes) }

// take reserves n more bytes for a request. The error has status 429 if the memory is
// in use, or 400 if no client may have so much.
func (s *Server) take(r *http.Request, param string, n int64) error {
	v, ok := r.Context().Value(reservationKey{}).(*reservation)
	if !ok { // in tests
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.bytes+n > s.memory.limit/2 {
		return invalid(param, "the request needs over %d MB of memory, more than the limit of %d MB per client; request fewer tokens, choices or logprobs, or send less at once", (v.bytes+n)>>20, s.memory.limit/2>>20)
	}
	if !s.memory.take(v.client, n) {
		e := &apiError{status: http.StatusTooManyRequests, Message: "running requests use all the memory for requests; try again later", Type: "rate_limit_error", retry: 1}
		return e.withCode("memory_full")
	}
	v.bytes += n
	return nil
}

// giveBack releases memory that a request no longer needs.
func (s *Server) giveBack(r *http.Request, n int64) {
	if v, ok := r.Context().Value(reservationKey{}).(*reservation); ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.bytes -= n
		s.memory.give(v.client, n)
	}
}

// work runs f for a request within its client's CPU time; see scheduler.Work.
func (s *Server) work(r *http.Request, f func(tick func() error) error) error {
	return s.cfg.Scheduler.Work(r.Context(), callerOf(r).Name, f)
}
