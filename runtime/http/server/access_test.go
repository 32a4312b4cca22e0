//go:build unix

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/access"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// keyed returns a control with unnamed keys.
func keyed(t testing.TB, opt access.Options, keys ...string) *access.Control {
	t.Helper()
	opt.Load = func() ([]access.Key, error) { return access.Plain(keys) }
	return controlled(t, opt)
}

func controlled(t testing.TB, opt access.Options) *access.Control {
	t.Helper()
	c, err := access.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a request with headers, which may include Host. It returns the status, the
// error code and the response headers.
func (s *service) ask(t testing.TB, method, path, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var failed struct {
		Error struct{ Code, Message string }
	}
	if resp.StatusCode >= 400 {
		if err := json.Unmarshal(data, &failed); err != nil || failed.Error.Message == "" {
			t.Errorf("%s %s: %v in %s", method, path, err, data)
		}
	}
	return resp.StatusCode, failed.Error.Code, resp.Header
}

// TestLimits checks that a request over a limit is refused with Retry-After and that
// each response contains the remaining quota.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Access = controlled(t, access.Options{Registry: c.Registry, Load: func() ([]access.Key, error) {
			return access.Parse("keys", []byte("- {name: small, key: K, requests_per_minute: 2}\n- {name: urgent, key: U, max_priority: -5}\n"))
		}})
	})
	const body = `{"prompt":"a","max_tokens":1}`
	for i, left := range []string{"1", "0"} {
		status, _, h := s.ask(t, "POST", "/v1/completions", body, "Authorization", "Bearer K")
		if status != 200 || h.Get("x-ratelimit-limit-requests") != "2" || h.Get("x-ratelimit-remaining-requests") != left || h.Get("x-ratelimit-reset-requests") == "" {
			t.Errorf("request %d: status %d, %v", i, status, h)
		}
	}
	status, code, h := s.ask(t, "POST", "/v1/completions", body, "Authorization", "Bearer K")
	if retry := h.Get("Retry-After"); status != 429 || code != "rate_limit_exceeded" || retry != "30" && retry != "29" {
		t.Errorf("a third request: %d %s, Retry-After %s", status, code, retry)
	}
	if status, _, _ := s.ask(t, "GET", "/v1/models", "", "Authorization", "Bearer K"); status != 200 {
		t.Errorf("a request that computes nothing: %d", status)
	}
	for body, want := range map[string]int{`{"prompt":"a","max_tokens":1,"priority":-5}`: 200, `{"prompt":"a","max_tokens":1,"priority":-6}`: 403} {
		if status, code, _ := s.ask(t, "POST", "/v1/completions", body, "Authorization", "Bearer U"); status != want || want == 403 && code != "priority_not_allowed" {
			t.Errorf("%s: %d %s", body, status, code)
		}
	}
}

// TestMetricsKey checks that a key for metrics reads them and nothing else.
func TestMetricsKey(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Access = controlled(t, access.Options{Registry: c.Registry, Load: func() ([]access.Key, error) {
			return access.Parse("keys", []byte("- {name: prometheus, key: M, metrics_only: true}\n- {name: web, key: W}\n"))
		}})
	})
	for _, test := range []struct {
		method, path, key string
		want              int
	}{
		{"GET", "/metrics", "M", 200}, {"GET", "/metrics", "W", 200}, {"GET", "/metrics", "", 401}, {"GET", "/health", "M", 200},
		{"GET", "/v1/models", "M", 403}, {"GET", "/props", "M", 403}, {"POST", "/v1/completions", "M", 403}, {"POST", "/metrics", "M", 405},
	} {
		status, code, _ := s.ask(t, test.method, test.path, `{"prompt":"a","max_tokens":1}`, "X-Api-Key", test.key)
		if status != test.want || status == 403 && code != "key_not_allowed" {
			t.Errorf("%s %s with key %q: %d %s, want %d", test.method, test.path, test.key, status, code, test.want)
		}
	}
}

// TestPatientKey checks that the default priority of a key is its most urgent allowed
// one if that is above 0.
func TestPatientKey(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Access = controlled(t, access.Options{Registry: c.Registry, Load: func() ([]access.Key, error) {
			return access.Parse("keys", []byte("- {name: patient, key: P, max_priority: 10}\n"))
		}})
	})
	for body, want := range map[string]int{`{"prompt":"a","max_tokens":1}`: 200, `{"prompt":"a","max_tokens":1,"priority":9}`: 403} {
		if status, code, _ := s.ask(t, "POST", "/v1/completions", body, "Authorization", "Bearer P"); status != want {
			t.Errorf("%s: %d %s", body, status, code)
		}
	}
}

// TestPriorityWithoutKey checks that clients without a key cannot request an urgent
// priority.
func TestPriorityWithoutKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for priority, want := range map[string]int{"-1": 403, "0": 200, "7": 200} {
		if status, _, _ := s.ask(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":1,"priority":`+priority+`}`); status != want {
			t.Errorf("priority %s: %d", priority, status)
		}
	}
}

// TestBrowsers checks that pages of other origins are refused and that the service's
// own and permitted ones are not.
func TestBrowsers(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Origins, c.Hosts = []string{"https://a.example"}, []string{"chat.example"}
	})
	const body, kind, plain = `{"prompt":"a","max_tokens":1}`, "Content-Type", "text/plain"
	jsonType := "application/json; charset=utf-8"
	for _, c := range []struct {
		want    int
		headers []string
	}{
		{200, nil}, // like curl
		{200, []string{kind, "application/x-www-form-urlencoded"}},
		{403, []string{kind, plain, "Origin", "https://evil.example"}},
		{403, []string{kind, jsonType, "Origin", "https://evil.example"}},
		{403, []string{kind, jsonType, "Origin", "null"}},
		{403, []string{kind, jsonType, "Sec-Fetch-Site", "cross-site"}},
		{200, []string{kind, jsonType, "Origin", "https://a.example", "Sec-Fetch-Site", "cross-site"}},
		{415, []string{kind, plain, "Origin", "https://a.example"}},
		{200, []string{kind, jsonType, "Origin", s.URL}},
		{200, []string{kind, jsonType, "Origin", "https://chat.example", "Host", "chat.example"}}, // through a proxy with HTTPS
		{415, []string{kind, plain, "Origin", s.URL}},
		{403, []string{kind, jsonType, "Host", "rebound.example"}},
		{403, []string{kind, jsonType, "Origin", "http://rebound.example", "Host", "rebound.example"}},
	} {
		if status, code, _ := s.ask(t, "POST", "/v1/completions", body, c.headers...); status != c.want {
			t.Errorf("%v: %d %s, want %d", c.headers, status, code, c.want)
		}
	}
	for path, want := range map[string]int{"/": 200, "/health": 200, "/v1/models": 200} { // links from other pages
		if status, _, _ := s.ask(t, "GET", path, "", "Sec-Fetch-Site", "cross-site"); status != want {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	if status, _, _ := s.ask(t, "GET", "/props", "", "Host", "rebound.example"); status != 403 {
		t.Errorf("a GET under another name: %d", status)
	}
}

// run starts a server on an address of its own and returns a function that stops it.
func (s *service) run(t testing.TB, l server.Listening) (address string, stop func()) {
	t.Helper()
	l.Address = "127.0.0.1:0"
	listener, err := l.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.New(withoutCounts(s.cfg)).Run(ctx, listener, l) }()
	return listener.Addr().String(), sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestRebinding checks that a loopback address without keys refuses foreign host names.
func TestRebinding(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	address, stop := s.run(t, server.Listening{})
	defer stop()
	own := &service{Server: &httptest.Server{URL: "http://" + address}}
	_, port, _ := net.SplitHostPort(address)
	for host, want := range map[string]int{address: 200, "localhost:" + port: 200, "A.localhost.": 200, "127.9.9.9": 200, "[::1]:80": 200, "evil.example": 403, "10.0.0.1": 403, "127.0.0.1.evil.example": 403} {
		for _, path := range []string{"/", "/health", "/v1/models"} {
			if status, _, _ := own.ask(t, "GET", path, "", "Host", host); status != want {
				t.Errorf("%s at %s: %d", path, host, status)
			}
		}
	}
}

// TestIdleConnections checks that thousands of idle connections do not block other
// clients.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	address, stop := s.run(t, server.Listening{Connections: 300})
	defer stop()
	for i := range 1000 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(i, err)
		}
		defer c.Close()
		if i%3 == 1 {
			fmt.Fprint(c, "GET /health HTTP/1.1\r\nHost: loc")
		} else if i%3 == 2 {
			fmt.Fprint(c, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
		}
		if i%100 == 99 {
			begun := time.Now()
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/health")
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(i, resp, err)
			}
			resp.Body.Close()
			if took := time.Since(begun); took > 2*time.Second { // usually a millisecond, but more on a busy machine
				t.Errorf("after %d connections: %v", i+1, took)
			}
		}
	}
}

// TestEnding checks that a service that is shutting down refuses requests while its
// last answers are computed, also on new connections.
func TestEnding(t *testing.T) {
	t.Parallel()
	g := gate{make(chan struct{})}
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Constrain = func(server.Constraint) (decode.Mask, error) { return g, nil }
	})
	address, stop := s.run(t, server.Listening{})
	own := &service{Server: &httptest.Server{URL: "http://" + address}}
	last := make(chan int, 1)
	go func() {
		status, _, _ := own.ask(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":2,"guided_regex":"a"}`)
		last <- status
	}()
	for running := 0; running == 0; time.Sleep(time.Millisecond) {
		_, running = s.cfg.Scheduler.Load()
	}
	ended := make(chan struct{})
	go func() { stop(); close(ended) }()
	status, code, h := 200, "", http.Header(nil)
	for status == 200 {
		status, code, h = own.ask(t, "GET", "/health", "")
	}
	if status != 503 || code != "shutting_down" || h.Get("Retry-After") == "" {
		t.Errorf("while it ends: %d %s %v", status, code, h)
	}
	if status, _, _ := own.ask(t, "POST", "/v1/completions", `{"prompt":"a"}`); status != 503 {
		t.Errorf("while it ends: %d", status)
	}
	close(g.open)
	if status := <-last; status != 200 {
		t.Errorf("what ran: %d", status)
	}
	<-ended
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("still listening")
	}
}

// TestTokenCounts checks that the tokens charged to keys are those that were computed,
// and that a request that did not run is charged nothing.
func TestTokenCounts(t *testing.T) {
	t.Parallel()
	g := gate{make(chan struct{})}
	s := start(t, func(c *server.Config, _ *scheduler.Options, e *engine.Options) {
		c.Access = keyed(t, access.Options{Registry: c.Registry, Limits: access.Limits{Tokens: 10000}}, "K")
		c.Constrain = func(server.Constraint) (decode.Mask, error) { return g, nil }
		c.Sequences, e.MaxSeqs = 1, 1
	})
	ask := func(ctx context.Context, body string) {
		req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer K")
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		} else if ctx.Err() == nil {
			t.Error(err)
		}
	}
	until := func(done func(waiting, running int) bool) {
		for !done(s.cfg.Scheduler.Load()) {
			time.Sleep(time.Millisecond)
		}
	}
	has := func(line string) bool {
		var metrics bytes.Buffer
		s.cfg.Registry.WriteTo(&metrics)
		return strings.Contains(metrics.String(), line+"\n")
	}
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { ask(t.Context(), `{"prompt":"abc","max_tokens":4,"guided_regex":"a"}`) })
	until(func(_, running int) bool { return running == 1 })
	all.Go(func() { ask(ctx, `{"prompt":"never","max_tokens":4}`) })
	until(func(waiting, _ int) bool { return waiting == 1 })
	leave()
	until(func(int, int) bool { return has(`iflowc_requests_total{code="499"} 1`) })
	close(g.open)
	all.Wait()
	until(func(waiting, running int) bool { return waiting+running == 0 })
	for _, want := range []string{`iflowc_key_tokens_total{key="api-key-1"} 7`, "iflowc_prompt_tokens_total 3", "iflowc_generated_tokens_total 4"} {
		for deadline := time.Now().Add(10 * time.Second); !has(want) && time.Now().Before(deadline); { // counted behind the answer
			time.Sleep(time.Millisecond)
		}
		if !has(want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}
