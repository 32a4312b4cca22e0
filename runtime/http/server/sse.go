//go:build unix

package server

import (
	"net/http"
	"time"
)

// A sender writes server-sent events.
type sender struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	buf  []byte
	open bool
}

// slowest is how long a client may take to receive one event.
const slowest = 30 * time.Second

func newSender(w http.ResponseWriter) *sender {
	return &sender{w: w, ctl: http.NewResponseController(w)}
}

// begin starts the answer: from now on errors are events.
func (s *sender) begin() {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.open = true
}

// add puts an event behind those that the next flush writes.
func (s *sender) add(v any) error {
	data, err := marshal(v) // with a line end
	if err != nil {
		return err
	}
	s.buf = append(append(append(s.buf, "data: "...), data...), '\n')
	return nil
}

// flush writes the events that were added and lets them go at once.
func (s *sender) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	if !s.open {
		s.begin()
	}
	defer func() { s.buf = s.buf[:0] }()
	s.ctl.SetWriteDeadline(time.Now().Add(slowest)) // without one the server's own holds
	if _, err := s.w.Write(s.buf); err != nil {
		return errStarted
	}
	if s.ctl.Flush() != nil {
		return errStarted
	}
	return nil
}

// end writes the mark that nothing follows.
func (s *sender) end() error {
	s.buf = append(s.buf, "data: [DONE]\n\n"...)
	return s.flush()
}

// fail ends the answer with an error: an event once it has begun.
func (s *sender) fail(err error) error {
	if !s.open {
		return err
	}
	s.add(struct {
		Error *apiError `json:"error"`
	}{failure(err)})
	s.flush()
	return errStarted
}
