//go:build unix

package server

import (
	"net/http/httptest"
	"testing"

	"github.com/iflowc/iflowc/runtime/http/access"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// TestCharge checks that tokens are charged to the request's client.
func TestCharge(t *testing.T) {
	t.Parallel()
	registry := &metrics.Registry{}
	c, err := access.New(access.Options{Registry: registry, Limits: access.Limits{Tokens: 10}})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{cfg: Config{Access: c}}
	ask := func(peer string, tokens int) *apiError {
		r := httptest.NewRequest("POST", "/v1/completions", nil)
		r.RemoteAddr = peer
		w := httptest.NewRecorder()
		caller, e := s.admit(w, r)
		defer caller.End()
		if w.Header().Get("X-Ratelimit-Limit-Tokens") != "10" {
			t.Errorf("headers %v", w.Header())
		}
		job, err := s.job(r.WithContext(withCaller(r.Context(), caller)), shared{})
		if err != nil {
			t.Fatal(err)
		}
		defer job.Charge(tokens) // the model may compute after the end of the request
		return e
	}
	if e := ask("1.1.1.1:1", 20); e != nil {
		t.Fatal(e)
	}
	if e := ask("1.1.1.1:2", 0); e == nil || e.status != 429 || e.retry < 59 || e.retry > 60 {
		t.Errorf("10 tokens too many: %+v", e)
	}
	if e := ask("1.1.1.2:1", 0); e != nil {
		t.Errorf("another address: %+v", e)
	}
}
