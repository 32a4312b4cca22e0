//go:build unix

package server

import (
	"context"
	"net/http"
	"sync"
)

// memory is what the requests under way may take together, in bytes, beside the
// model. Each takes what it may need before it allocates that, and gives it back at
// its end.
type memory struct {
	most int64

	mu   sync.Mutex
	used int64
	held map[string]int64 // by each client
}

func newMemory(most int64) *memory { return &memory{most: most, held: map[string]int64{}} }

// take says whether a client may have n bytes more: at most as many as are left
// then, so that one client alone gets half, and others still find some (dynamic
// thresholds, Choudhury and Hahne 1998).
func (m *memory) take(client string, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[client]+n > m.most-m.used-n {
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

// A reservation is what a request has taken.
type reservation struct {
	memory *memory
	client string

	mu    sync.Mutex
	bytes int64
}

// A reservationKey finds the reservation in a request's context.
type reservationKey struct{}

func (s *Server) reserve(ctx context.Context, client string) (context.Context, *reservation) {
	v := &reservation{memory: s.memory, client: client}
	return context.WithValue(ctx, reservationKey{}, v), v
}

// end gives everything back.
func (v *reservation) end() { v.memory.give(v.client, v.bytes) }

// take takes n bytes more for a request, or refuses it: for now, or for ever where
// no client could have so much.
func (s *Server) take(r *http.Request, param string, n int64) error {
	v, ok := r.Context().Value(reservationKey{}).(*reservation)
	if !ok { // a test's request
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.bytes+n > s.memory.most/2 {
		return invalid(param, "the request needs over %d MB of memory, of which this service gives a client at most %d; ask for fewer tokens, choices or logprobs, or send less at once", (v.bytes+n)>>20, s.memory.most/2>>20)
	}
	if !s.memory.take(v.client, n) {
		e := &apiError{status: http.StatusTooManyRequests, Message: "requests under way take all the memory that there is for them; try again later", Type: "rate_limit_error", retry: 1}
		return e.withCode("memory_full")
	}
	v.bytes += n
	return nil
}

// giveBack gives back what a request took and needs no more.
func (s *Server) giveBack(r *http.Request, n int64) {
	if v, ok := r.Context().Value(reservationKey{}).(*reservation); ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.bytes -= n
		s.memory.give(v.client, n)
	}
}

// work does something for a request in slices of processor time, see
// scheduler.Work.
func (s *Server) work(r *http.Request, f func(tick func() error) error) error {
	return s.cfg.Scheduler.Work(r.Context(), callerOf(r).Name, f)
}
