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

// callerOf is who sent a request.
func callerOf(r *http.Request) *access.Caller {
	if c, ok := r.Context().Value(callerKey{}).(*access.Caller); ok {
		return c
	}
	return &access.Caller{}
}

// charge counts the tokens of a request's prompts and answers against its
// caller's limit. It is called where an answer ends, also one that was cut off.
func charge(r *http.Request, tokens int) {
	if c, ok := r.Context().Value(callerKey{}).(*access.Caller); ok {
		c.Charge(tokens)
	}
}

// admit says who sent a request, or why it is refused. The caller's End must be
// called either way.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*access.Caller, *apiError) {
	none := &access.Caller{}
	if s.ending.Load() {
		w.Header().Set("Connection", "close")
		return none, failure(errEnding)
	}
	if e := s.foreign(r); e != nil {
		return none, e
	}
	if harmless(r) {
		return none, nil
	}
	caller, err := s.cfg.Access.Identify(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		e := &apiError{status: http.StatusUnauthorized, Message: err.Error(), Type: invalidRequest}
		return none, e.withCode("invalid_api_key")
	}
	if r.Method != http.MethodPost { // computes nothing
		return caller, nil
	}
	refusal := caller.Begin()
	quotaHeaders(w.Header(), caller)
	if refusal != nil {
		return caller, tooMany(refusal)
	}
	return caller, nil
}

// harmless are requests that everybody may send: is the service alive, and the
// page, which asks for the key.
func harmless(r *http.Request) bool {
	return r.URL.Path == "/health" || r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// tooMany refuses what is over a limit.
func tooMany(r *access.Refusal) *apiError {
	seconds := max(1, int((r.Wait+time.Second-1)/time.Second))
	e := &apiError{status: http.StatusTooManyRequests, Message: r.Text, Type: "rate_limit_error", retry: seconds}
	if r.Limit == "concurrency" {
		return e.withCode("concurrency_limit_exceeded")
	}
	e.Message += "; try again in " + (time.Duration(seconds) * time.Second).String()
	return e.withCode("rate_limit_exceeded")
}

// quotaHeaders tells a caller what is left of its limits, as OpenAI's service
// does.
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
