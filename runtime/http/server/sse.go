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

// eventTimeout limits the time that a client takes to receive one event.
const eventTimeout = 30 * time.Second

func newSender(w http.ResponseWriter) *sender {
	return &sender{w: w, ctl: http.NewResponseController(w)}
}

// begin writes the header. Later errors are sent as events.
func (s *sender) begin() {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.open = true
}

// add queues an event for the next flush.
func (s *sender) add(v any) error {
	data, err := marshal(v) // ends with a newline
	if err != nil {
		return err
	}
	s.buf = append(append(append(s.buf, "data: "...), data...), '\n')
	return nil
}

// flush writes the queued events to the connection.
func (s *sender) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	if !s.open {
		s.begin()
	}
	defer func() { s.buf = s.buf[:0] }()
	s.ctl.SetWriteDeadline(time.Now().Add(eventTimeout)) // an error leaves the server's own deadline
	if _, err := s.w.Write(s.buf); err != nil {
		return errStarted
	}
	if s.ctl.Flush() != nil {
		return errStarted
	}
	return nil
}

// end writes the event that ends the stream.
func (s *sender) end() error {
	s.buf = append(s.buf, "data: [DONE]\n\n"...)
	return s.flush()
}

// fail ends the stream with an error event. If nothing was sent yet, it returns the
// error, for an error status.
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
