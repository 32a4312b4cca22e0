//go:build unix

package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// middleware wraps all handlers: request id, CORS, authentication, origin checks,
// limits, and a log line per request.
func (s *Server) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		x := &exchange{ResponseWriter: w, id: requestID(r)}
		h := w.Header()
		h.Set("X-Request-Id", x.id)
		h.Set("X-Content-Type-Options", "nosniff")
		if len(r.TransferEncoding) > 0 { // there may have been a Content-Length too, by which a proxy reads another end (RFC 9112, 6.3)
			h.Set("Connection", "close")
		}
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				s.cfg.Log.Error("panic", "request", x.id, "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				if e := failure(errors.New("internal error (bug); see the service's log for this request id")); !x.out.close(e) && x.status == 0 {
					writeError(x, r, e)
				}
			}
			s.finish(x, r, start)
		}()
		leave, e := entered(r, x)
		defer leave()
		if r.Context().Err() != nil { // reset before it began
			x.status = statusGone
			return
		}
		if e != nil {
			writeError(x, r, e)
			return
		}
		defer working(r)()
		if s.cors(x, r) {
			return
		}
		caller, e := s.admit(x, r)
		defer caller.End()
		if e != nil {
			writeError(x, r, e)
			return
		}
		x.client = caller.Name
		r.Body = http.MaxBytesReader(x, r.Body, s.cfg.Body)
		ctx, cancel := context.WithTimeout(context.WithValue(withCaller(r.Context(), caller), arrivalKey{}, arrival{x.id, start, x}), s.cfg.Timeout)
		defer cancel()
		ctx, held := s.reserve(ctx, caller.Name)
		defer held.end()
		ctx, chosen := withSelection(ctx)
		defer chosen.end()
		next.ServeHTTP(x, r.WithContext(ctx))
	})
}

// finish counts and logs a request.
func (s *Server) finish(x *exchange, r *http.Request, start time.Time) {
	status := x.status
	if status == 0 {
		status = statusGone
	}
	s.counts.requests.Add(1, fmt.Sprint(status))
	level := slog.LevelInfo
	if status >= 500 {
		level = slog.LevelWarn
	}
	s.cfg.Log.Log(context.Background(), level, "request", "request", x.id, "method", r.Method, "path", r.URL.Path,
		"status", status, "ms", time.Since(start).Milliseconds(), "bytes", x.bytes, "client", s.cfg.Access.Client(r), "caller", x.client)
}

// answer converts a handler's error to a response or, in a stream that has begun, to an
// event.
func (s *Server) answer(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var out *sender
		err := h(w, r)
		if x, ok := w.(*exchange); ok {
			out = x.out
		}
		if err == nil || errors.Is(err, errGone) {
			out.close(nil)
			return
		}
		e := failure(err)
		if e.status >= 500 {
			s.cfg.Log.Warn("failed", "request", id(r), "error", err.Error())
		}
		if !out.close(e) {
			writeError(w, r, e)
		}
	})
}

// statusGone counts requests whose client disconnected before the response started.
const statusGone = 499

// errGone is returned by handlers whose client no longer reads the response.
var errGone = errors.New("the client is gone")

// An exchange is a ResponseWriter that records the status and size of the response.
type exchange struct {
	http.ResponseWriter
	id     string
	client string // name of the client, once it is identified
	status int
	bytes  int64
	out    *sender     // of a stream
	from   *connection // nil in tests
}

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(p)
	x.bytes += int64(n)
	if x.from != nil {
		x.from.rate.credit(n / 2) // for frames by which the client says that it has read
	}
	return n, err
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

type arrivalKey struct{}

// An arrival is a request's id, when the request arrived, and its response.
type arrival struct {
	id string
	at time.Time
	x  *exchange
}

// id returns a request's id.
func id(r *http.Request) string {
	v, _ := r.Context().Value(arrivalKey{}).(arrival)
	return v.id
}

// exchangeOf returns a request's response, or nil in tests.
func exchangeOf(r *http.Request) *exchange {
	v, _ := r.Context().Value(arrivalKey{}).(arrival)
	return v.x
}

// requestOf returns what the scheduler logs of a request, or nil in tests.
func requestOf(r *http.Request) *scheduler.Request {
	if v, ok := r.Context().Value(arrivalKey{}).(arrival); ok {
		return &scheduler.Request{ID: v.id, Arrived: v.at}
	}
	return nil
}

// elapsed returns the time since a request arrived.
func elapsed(r *http.Request) time.Duration {
	if v, ok := r.Context().Value(arrivalKey{}).(arrival); ok {
		return time.Since(v.at)
	}
	return 0
}

// requestID returns the client's X-Request-Id if it is a plain word, else a new id.
func requestID(r *http.Request) string {
	v := r.Header.Get("X-Request-Id")
	plain := func(c rune) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '.'
	}
	if v != "" && len(v) <= 64 && strings.IndexFunc(v, func(c rune) bool { return !plain(c) }) < 0 {
		return v
	}
	return newID("req_")
}

// newID returns prefix and 96 random bits in hexadecimal.
func newID(prefix string) string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}
