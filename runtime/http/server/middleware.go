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
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				s.cfg.Log.Error("panic", "request", x.id, "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				if x.status == 0 {
					writeError(x, r, failure(errors.New("internal error (bug); see the service's log for this request id")))
				}
			}
			s.finish(x, r, start)
		}()
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
		ctx, cancel := context.WithTimeout(context.WithValue(withCaller(r.Context(), caller), idKey{}, x.id), s.cfg.Timeout)
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
		status = 499 // the client disconnected before the response started
	}
	s.counts.requests.Add(1, fmt.Sprint(status))
	level := slog.LevelInfo
	if status >= 500 {
		level = slog.LevelWarn
	}
	s.cfg.Log.Log(context.Background(), level, "request", "request", x.id, "method", r.Method, "path", r.URL.Path,
		"status", status, "ms", time.Since(start).Milliseconds(), "bytes", x.bytes, "client", r.RemoteAddr, "caller", x.client)
}

// answer converts a handler's error to a response.
func (s *Server) answer(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil || errors.Is(err, errStarted) || errors.Is(r.Context().Err(), context.Canceled) {
			return
		}
		e := failure(err)
		if e.status >= 500 {
			s.cfg.Log.Warn("failed", "request", id(r), "error", err.Error())
		}
		writeError(w, r, e)
	})
}

// errStarted is returned by handlers after the response has started; the error is part
// of it.
var errStarted = errors.New("the response has started")

// An exchange is a ResponseWriter that records the status and size of the response.
type exchange struct {
	http.ResponseWriter
	id     string
	client string // name of the client, once it is identified
	status int
	bytes  int64
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
	return n, err
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

type idKey struct{}

// id returns a request's id.
func id(r *http.Request) string {
	v, _ := r.Context().Value(idKey{}).(string)
	return v
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
