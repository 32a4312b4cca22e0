//go:build unix

package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/iflowc/iflowc/runtime/http/access"
)

type callerKey struct{}

func withCaller(ctx context.Context, c *access.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf returns the client that sent a request.
func callerOf(r *http.Request) *access.Caller {
	if c, ok := r.Context().Value(callerKey{}).(*access.Caller); ok {
		return c
	}
	return &access.Caller{}
}

// admit identifies the client of a request and applies its limits. The client's End
// must be called, even after an error.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*access.Caller, *apiError) {
	none := &access.Caller{}
	if s.ending.Load() {
		w.Header().Set("Connection", "close")
		return none, failure(errEnding)
	}
	if r.ProtoMajor > 1 && r.TLS == nil {
		w.Header().Set("Connection", "close")
		e := invalid("", "HTTP/2 needs TLS (--tls-cert and --tls-key); without it, use HTTP/1.1")
		e.status = http.StatusHTTPVersionNotSupported
		return none, e
	}
	if e := s.foreign(r); e != nil {
		return none, e
	}
	if public(r) {
		return none, nil
	}
	caller, err := s.cfg.Access.Identify(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		e := &apiError{status: http.StatusUnauthorized, Message: err.Error(), Type: invalidRequest}
		return none, e.withCode("invalid_api_key")
	}
	if caller.MetricsOnly && r.URL.Path != "/metrics" {
		e := invalid("", "the key %s may only read /metrics", caller.Name).withCode("key_not_allowed")
		e.status = http.StatusForbidden
		return caller, e
	}
	if r.Method != http.MethodPost { // other methods compute nothing
		return caller, nil
	}
	refusal := caller.Begin()
	quotaHeaders(w.Header(), caller)
	if refusal != nil {
		return caller, tooMany(refusal)
	}
	return caller, nil
}

// public reports whether a request needs no key: the health check, and the chat page,
// which asks the user for the key.
func public(r *http.Request) bool {
	return r.URL.Path == "/health" || r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// tooMany converts a refusal to a response with status 429.
func tooMany(r *access.Refusal) *apiError {
	seconds := max(1, int((r.Wait+time.Second-1)/time.Second))
	e := &apiError{status: http.StatusTooManyRequests, Message: r.Text, Type: "rate_limit_error", retry: seconds}
	if r.Limit == "concurrency" {
		return e.withCode("concurrency_limit_exceeded")
	}
	e.Message += "; try again in " + (time.Duration(seconds) * time.Second).String()
	return e.withCode("rate_limit_exceeded")
}

// quotaHeaders sets OpenAI's x-ratelimit-* headers.
func quotaHeaders(h http.Header, c *access.Caller) {
	requests, tokens := c.Quotas()
	for _, q := range []struct {
		what string
		access.Quota
	}{{"requests", requests}, {"tokens", tokens}} {
		if q.Limit > 0 {
			h.Set("X-Ratelimit-Limit-"+q.what, strconv.Itoa(q.Limit))
			h.Set("X-Ratelimit-Remaining-"+q.what, strconv.Itoa(q.Remaining))
			h.Set("X-Ratelimit-Reset-"+q.what, q.Reset.Round(time.Millisecond).String())
		}
	}
}
