//go:build unix

package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// around adds what every request gets: an id, CORS, a check of the key, a limit
// of its size, a log line.
func (s *Server) around(next http.Handler) http.Handler {
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
					writeError(x, failure(errors.New("bug in the service; its log has more under the request's id")))
				}
			}
			s.finish(x, r, start)
		}()
		if s.cors(x, r) {
			return
		}
		if e := s.authorise(r); e != nil {
			h.Set("WWW-Authenticate", "Bearer")
			writeError(x, e)
			return
		}
		r.Body = http.MaxBytesReader(x, r.Body, s.cfg.Body)
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), idKey{}, x.id), s.cfg.Timeout)
		defer cancel()
		next.ServeHTTP(x, r.WithContext(ctx))
	})
}

// finish counts and logs an answer.
func (s *Server) finish(x *exchange, r *http.Request, start time.Time) {
	status := x.status
	if status == 0 {
		status = 499 // the client has gone before an answer began
	}
	s.counts.requests.Add(1, fmt.Sprint(status))
	level := slog.LevelInfo
	if status >= 500 {
		level = slog.LevelWarn
	}
	s.cfg.Log.Log(context.Background(), level, "request", "request", x.id, "method", r.Method, "path", r.URL.Path,
		"status", status, "ms", time.Since(start).Milliseconds(), "bytes", x.bytes, "client", r.RemoteAddr)
}

// answer turns a handler's error into an answer.
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
		writeError(w, e)
	})
}

// errStarted says that the answer had begun, so that its error is in it.
var errStarted = errors.New("the answer had begun")

// An exchange is a response writer that knows what it wrote.
type exchange struct {
	http.ResponseWriter
	id     string
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

// Unwrap lets http.ResponseController reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

type idKey struct{}

// id is a request's id.
func id(r *http.Request) string {
	v, _ := r.Context().Value(idKey{}).(string)
	return v
}

// requestID takes the client's id where that is a plain word, else makes one.
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

// newID is a prefix and 96 random bits.
func newID(prefix string) string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// authorise checks the key, in a time that does not depend on which or how
// much of one is right. Health is for everybody.
func (s *Server) authorise(r *http.Request) *apiError {
	if len(s.cfg.Keys) == 0 || r.URL.Path == "/health" || r.URL.Path == "/" && r.Method == http.MethodGet {
		return nil
	}
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		key = r.Header.Get("X-Api-Key")
	}
	given, right := sha256.Sum256([]byte(key)), 0
	for _, k := range s.cfg.Keys {
		want := sha256.Sum256([]byte(k))
		right |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	if right == 1 {
		return nil
	}
	e := &apiError{status: http.StatusUnauthorized, Message: "incorrect or missing API key; send it as \"Authorization: Bearer KEY\"", Type: invalidRequest}
	return e.withCode("invalid_api_key")
}

// client is for whom a request counts: its key, else its address.
func client(r *http.Request) string {
	if key := r.Header.Get("Authorization"); key != "" {
		return key
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// cors answers what browsers ask before a request from another origin, and
// lets them read the answer; done: nothing else is to be answered.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (done bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	all := slices.Contains(s.cfg.Origins, "*")
	if !all && !slices.Contains(s.cfg.Origins, origin) {
		return false
	}
	if all {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key, X-Request-Id, X-Stainless-*, "+r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
