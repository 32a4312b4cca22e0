//go:build unix

package server

import (
	"net/http"
	"time"
)

// A sender writes a stream of server-sent events, or of lines of JSON.
type sender struct {
	w      http.ResponseWriter
	ctl    *http.ResponseController
	failed func(e *apiError) (event string, body any) // formats errors
	lines  bool                                       // lines of JSON
	buf    []byte
	open   bool
}

// eventTimeout limits the time that a client takes to receive one event.
const eventTimeout = 30 * time.Second

func newSender(w http.ResponseWriter, r *http.Request) *sender {
	return &sender{w: w, ctl: http.NewResponseController(w), failed: errorFormat(r), lines: ollamaPath(r)}
}

// begin writes the header. Later errors are sent as events.
func (s *sender) begin() {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	if s.lines {
		h.Set("Content-Type", "application/x-ndjson")
	}
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
	if s.lines {
		s.buf = append(s.buf, data...)
		return nil
	}
	s.buf = append(append(append(s.buf, "data: "...), data...), '\n')
	return nil
}

// event queues a named event for the next flush.
func (s *sender) event(name string, v any) error {
	s.buf = append(append(append(s.buf, "event: "...), name...), '\n')
	return s.add(v)
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
	name, body := s.failed(failure(err))
	if name != "" {
		s.event(name, body)
	} else {
		s.add(body)
	}
	s.flush()
	return errStarted
}
