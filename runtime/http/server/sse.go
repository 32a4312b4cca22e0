//go:build unix

package server

import (
	"net/http"
	"sync"
	"time"
)

// A sender writes a stream of server-sent events, or of lines of JSON. A timer keeps the
// stream alive, whatever its handler waits for: it sends what is queued, or a ping.
type sender struct {
	w     http.ResponseWriter
	ctl   *http.ResponseController
	pace  pace
	lines bool // lines of JSON

	mu     sync.Mutex                                 // guards what follows: the timer runs on a goroutine of its own
	failed func(e *apiError) (event string, body any) // formats errors
	ping   func() (event string, body any)            // formats pings; a nil body is a comment
	buf    []byte
	open   bool // the header was sent; later errors are events
	broken bool // the client is gone
	timer  *time.Timer
	due    time.Time // when the next bytes must be sent
}

// A pace is the longest silence of a stream.
type pace struct {
	opening time.Duration // after the request was admitted to the queue
	silence time.Duration // at other times, also while a long request is checked
}

// defaultPace keeps proxies and clients from giving up. Answers that begin within the
// opening are sent at once, with the header.
var defaultPace = pace{opening: 250 * time.Millisecond, silence: 5 * time.Second}

// eventTimeout limits the time that a client takes to receive one event.
const eventTimeout = 30 * time.Second

// newSender returns the sender of a request's answer. With streams, the answer is a
// stream, which is kept alive from now on until the handler returns.
func (s *Server) newSender(w http.ResponseWriter, r *http.Request, streams bool) *sender {
	x, _ := w.(*exchange)
	if x != nil && x.out != nil {
		if streams {
			return x.out // since the body was read
		}
		x.out.close(nil)
		x.out = nil
	}
	out := &sender{w: w, ctl: http.NewResponseController(w), pace: s.cfg.pace, lines: ollamaPath(r) || inferflowPath(r), failed: errorFormat(r), ping: s.pingFormat(r)}
	if r.URL.Path == responsesPath {
		out.failed = responseFailure
	}
	if streams {
		out.start()
		if x != nil {
			x.out = out
		}
	}
	return out
}

// start starts the timer.
func (s *sender) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = time.Now().Add(s.pace.silence)
	s.timer = time.AfterFunc(s.pace.silence, s.keepAlive)
}

// admitted notes that the request waits for the model: the events that are queued, or
// the first ping, are sent soon.
func (s *sender) admitted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		s.due = time.Now().Add(s.pace.opening)
		s.timer.Reset(s.pace.opening)
	}
}

// keepAlive sends what is queued, or a ping, unless something was sent recently.
func (s *sender) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil || s.broken {
		return
	}
	if time.Until(s.due) <= 0 {
		if len(s.buf) == 0 {
			s.queue(s.ping())
		}
		s.write()
	}
	s.timer.Reset(time.Until(s.due))
}

// pingFormat returns the function that formats pings for a request's API.
func (s *Server) pingFormat(r *http.Request) func() (event string, body any) {
	switch {
	case messagesPath(r):
		return func() (string, any) { return "ping", map[string]string{"type": "ping"} }
	case ollamaPath(r):
		return ollamaPing(r, tagged(s.cfg.Model))
	case inferflowPath(r):
		return func() (string, any) { return "", inferflowPart(r, "", false) }
	}
	return func() (string, any) { return "", nil }
}

// setFailed changes the format of errors.
func (s *sender) setFailed(failed func(e *apiError) (event string, body any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = failed
}

// setPing changes the format of pings.
func (s *sender) setPing(ping func() (event string, body any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ping = ping
}

// add queues an event for the next flush.
func (s *sender) add(v any) error { return s.event("", v) }

// event queues a named event for the next flush.
func (s *sender) event(name string, v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue(name, v)
}

// queue queues an event, a named one, or with a nil body a comment. s.mu is held.
func (s *sender) queue(name string, v any) error {
	if v == nil {
		s.buf = append(s.buf, ": ping\n\n"...)
		return nil
	}
	data, err := marshal(v) // ends with a newline
	if err != nil {
		return err
	}
	if s.lines {
		s.buf = append(s.buf, data...)
		return nil
	}
	if name != "" {
		s.buf = append(append(append(s.buf, "event: "...), name...), '\n')
	}
	s.buf = append(append(append(s.buf, "data: "...), data...), '\n')
	return nil
}

// drop drops the queued events if none was sent, and reports whether none was.
func (s *sender) drop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		s.buf = s.buf[:0]
	}
	return !s.open
}

// flush writes the queued events to the connection.
func (s *sender) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write()
}

// write is flush; s.mu is held.
func (s *sender) write() error {
	if s.broken {
		return errGone
	}
	if len(s.buf) == 0 {
		return nil
	}
	if !s.open {
		s.open = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		if s.lines {
			h.Set("Content-Type", "application/x-ndjson")
		}
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
	now := time.Now()
	s.due = now.Add(s.pace.silence)
	s.ctl.SetWriteDeadline(now.Add(eventTimeout)) // an error leaves the server's own deadline
	_, err := s.w.Write(s.buf)
	if err == nil {
		err = s.ctl.Flush()
	}
	s.buf = s.buf[:0]
	if s.broken = err != nil; s.broken {
		return errGone
	}
	return nil
}

// done writes the event that ends OpenAI's streams.
func (s *sender) done() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(s.buf, "data: [DONE]\n\n"...)
	return s.write()
}

// close ends the stream when its handler has returned, with an error event if e is not
// nil. It reports whether the response has started, so that there is no status to send.
// s may be nil.
func (s *sender) close(e *apiError) (started bool) {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if e != nil && s.open {
		s.queue(s.failed(e))
		s.write()
	}
	return s.open
}
