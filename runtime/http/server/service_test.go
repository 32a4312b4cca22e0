//go:build unix

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/access"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// TestKeys checks that requests without a valid key are refused.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Access = keyed(t, access.Options{}, "one", "two")
	})
	for key, want := range map[string]int{"": 401, "Bearer ": 401, "Bearer on": 401, "Bearer one": 200, "bearer two": 200, "BEARER  one": 200, "two": 401, "Basic one": 401} {
		req, err := http.NewRequest("GET", s.URL+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("key %q: status %d, expected %d", key, resp.StatusCode, want)
		}
	}
	if resp, err := http.Get(s.URL + "/health"); err != nil || resp.StatusCode != 200 {
		t.Errorf("health: %v %v", resp, err)
	}
}

// TestOrigins checks that only pages of listed origins may send requests.
func TestOrigins(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Origins = []string{"https://a.example"}
	})
	for origin, allowed := range map[string]string{"https://a.example": "https://a.example", "https://b.example": ""} {
		req, err := http.NewRequest("OPTIONS", s.URL+"/v1/chat/completions", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		req.Header.Set("Access-Control-Request-Method", "POST")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != allowed || (resp.StatusCode == 204) != (allowed != "") {
			t.Errorf("%s: %q, status %d", origin, got, resp.StatusCode)
		}
	}
}

// A gate is a mask that blocks until it is opened.
type gate struct{ open chan struct{} }

func (g gate) Mask() ([]uint64, error) {
	<-g.open
	return []uint64{1<<61 - 1}, nil
}
func (g gate) Accept(int32) error { return nil }
func (g gate) Done() bool         { return false }

func (gate) Ready(func()) bool { return true }

// TestQueue checks that requests beyond the queue are refused with Retry-After, and
// that a cancelled request frees its place.
func TestQueue(t *testing.T) {
	t.Parallel()
	g := gate{make(chan struct{})}
	s := start(t, func(c *server.Config, o *scheduler.Options, e *engine.Options) {
		o.Queue, e.MaxSeqs, c.Sequences = 2, 1, 1
		c.Constrain = func(server.Constraint) (decode.Mask, error) { return g, nil }
	})
	ctx, leave := context.WithCancel(t.Context())
	ask := func(ctx context.Context, body string) <-chan int {
		status := make(chan int, 1)
		go func() {
			req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/completions", strings.NewReader(body))
			if err != nil {
				status <- -1
				return
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				status <- 0
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			status <- resp.StatusCode
		}()
		return status
	}
	until := func(waiting, running int) {
		t.Helper()
		for range 1000 {
			if w, r := s.cfg.Scheduler.Load(); w == waiting && r == running {
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
		w, r := s.cfg.Scheduler.Load()
		t.Fatalf("%d wait and %d run, expected %d and %d", w, r, waiting, running)
	}
	first := ask(t.Context(), `{"prompt":"a","max_tokens":3,"guided_regex":"a"}`)
	until(0, 1)
	second, third := ask(ctx, `{"prompt":"b","max_tokens":3}`), ask(t.Context(), `{"prompt":"c","max_tokens":3}`)
	until(2, 1)
	var c completion
	status, header := s.post(t, "/v1/completions", `{"prompt":"d"}`, &c)
	if status != 429 || header.Get("Retry-After") == "" || c.Error == nil || *c.Error.Code != "queue_full" {
		t.Errorf("status %d, %+v", status, c.Error)
	}
	leave()
	b := <-second // it was cancelled before its answer
	close(g.open)
	if a, c := <-first, <-third; a != 200 || b != 0 || c != 200 {
		t.Errorf("statuses %d, %d, %d", a, b, c)
	}
	until(0, 0)
}

// TestLog checks that the log contains request ids and no prompts.
func TestLog(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var text bytes.Buffer
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Log = slog.New(slog.NewJSONHandler(writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return text.Write(p)
		}), nil))
	})
	req, err := http.NewRequest("POST", s.URL+"/v1/completions", strings.NewReader(`{"prompt":"Secret","max_tokens":2}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Request-Id", "abc-1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.Header.Get("X-Request-Id") != "abc-1" {
		t.Errorf("request id %q", resp.Header.Get("X-Request-Id"))
	}
	s.Close()
	mu.Lock()
	defer mu.Unlock()
	if out := text.String(); !strings.Contains(out, `"request":"abc-1"`) || !strings.Contains(out, `"status":200`) || strings.Contains(out, "Secret") {
		t.Errorf("log: %s", out)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestInferflow checks Inferflow requests, their return codes and streams.
func TestInferflow(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var a struct {
		Code string  `json:"ret_code"`
		Text string  `json:"text"`
		Time float64 `json:"time_cost"`
		End  bool    `json:"is_end"`
	}
	status, _ := s.post(t, "/", `{"header":{"fn":"process_query"},"text":"Hi","decoding_alg":"greedy","max_output_len":20}`, &a)
	want := s.greedy("uHi.A", 20)
	if status != 200 || a.Code != "succ" || a.Text != want || !a.End {
		t.Errorf("%d %+v, expected %q", status, a, want)
	}
	for body, code := range map[string]string{
		`{"text":""}`: "error.empty_request", `{`: "error.invalid_request_format", `{"header":{"fn":"x"},"text":"a"}`: "error.invalid_request_format",
		`{"text":"` + strings.Repeat("a", 600) + `"}`: "error.too_long_request", `{"text":"a","decoding_alg":"best"}`: "error.invalid_request_format",
	} {
		if status, _ := s.post(t, "/inferflow", body, &a); a.Code != code || status != 400 || !a.End {
			t.Errorf("%.40s: %d %+v, expected %s", body, status, a, code)
		}
	}
	resp, err := http.Post(s.URL+"/", "application/json", strings.NewReader(`{"text":"Hi","decoding_alg":{"name":"greedy"},"max_new_tokens":40,"is_streaming_mode":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, pieces := "", 0
	for d := json.NewDecoder(resp.Body); d.More(); pieces++ {
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if text += a.Text; !a.End && len(a.Text) < 16 {
			t.Errorf("a piece of %d bytes", len(a.Text))
		}
	}
	if text != s.greedy("uHi.A", 40) || !a.End || pieces < 2 {
		t.Errorf("%d pieces: %q", pieces, text)
	}
}

// TestState checks models, props, metrics and tokens.
func TestState(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.post(t, "/v1/completions", `{"prompt":"Count me","max_tokens":5,"temperature":0}`, nil)
	for path, want := range map[string]string{
		"/v1/models": `"id":"fake"`, "/v1/models/fake": `"object":"model"`, "/props": `"hash":"0123456789abcdef"`, "/health": `"status":"ok"`,
		"/metrics": "iflowc_generated_tokens_total 5", "/": "fake",
	} {
		resp, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(data), want) {
			t.Errorf("%s: %d %s %v", path, resp.StatusCode, data, err)
		}
	}
	var tok struct{ IDs []int32 }
	s.post(t, "/tokenize", `{"content":"AB"}`, &tok)
	var text struct{ Text string }
	s.post(t, "/detokenize", `{"tokens":[5,6]}`, &text)
	if fmt.Sprint(tok.IDs) != "[5 6]" || text.Text != "AB" {
		t.Errorf("%v %q", tok.IDs, text.Text)
	}
}

// TestShutdown checks that running requests finish, that new ones are refused, and that
// those over the grace period end with an error event.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{10 * time.Second, 20 * time.Millisecond} {
		s := start(t, func(_ *server.Config, _ *scheduler.Options, e *engine.Options) { e.MaxTokens = 4 })
		l := server.Listening{Address: "127.0.0.1:0", Grace: grace}
		listener, err := l.Listen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.New(withoutCounts(s.cfg)).Run(ctx, listener, l) }()
		url := "http://" + listener.Addr().String()
		body := make(chan string, 1)
		status := make(chan int, 1)
		go func() {
			resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"Go","max_tokens":480,"temperature":0,"stream":true}`))
			if err != nil {
				status <- 0
				body <- err.Error()
				return
			}
			status <- resp.StatusCode
			data, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			body <- string(data)
		}()
		if got := <-status; got != 200 {
			t.Fatalf("status %d: %s", got, <-body)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("grace %v: %v", grace, err)
		}
		text := <-body
		if grace > time.Second && !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("cut off within the grace: …%s", text[max(0, len(text)-200):])
		}
		if grace < time.Second && !strings.Contains(text, "shutting down") && !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("cut off without an error: …%s", text[max(0, len(text)-200):])
		}
		if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
			t.Error("still listening")
		}
	}
}

// withoutCounts prevents two servers of one scheduler from registering metrics twice.
func withoutCounts(c server.Config) server.Config {
	c.Registry = nil
	return c
}

// TestSlowClients checks that clients that do not finish their request are
// disconnected, that garbage gets an error or a closed connection, and that others are
// served meanwhile.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	l := server.Listening{Address: "127.0.0.1:0", Requests: 200 * time.Millisecond, Connections: 50}
	listener, err := l.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.New(withoutCounts(s.cfg)).Run(ctx, listener, l) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for _, begin := range []string{
		"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{\"pro",
		"POST /v1/completions HTTP/1.1\r\nHo",
		"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n",
		"GET /\r\nEvil: 1 HTTP/1.1\r\nHost: a\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01",
		"GET /v1/models HTTP/1.1\r\nHost: a\r\nX-Request-Id: a\r\n b\r\nConnection: close\r\n\r\n",
	} {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte(begin))
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		data, err := io.ReadAll(c)
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("%.40q holds its connection", begin)
		}
		if strings.Contains(string(data), "Evil:") {
			t.Errorf("a header was injected: %s", data)
		}
		c.Close()
	}
	resp, err := http.Post("http://"+listener.Addr().String()+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"a","max_tokens":2}`))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
}

// TestLoglikelihood checks that the log-likelihoods of lm-eval, computed from echo, are
// those of the model's rows, however the prompt is split into steps.
func TestLoglikelihood(t *testing.T) {
	t.Parallel()
	const text = "TheQuickBrownFoxJumpsOverTheLazyDog"
	var before []*float64
	for _, budget := range []int{512, 5} {
		s := start(t, func(_ *server.Config, _ *scheduler.Options, e *engine.Options) { e.MaxTokens = budget })
		var c completion
		s.post(t, "/v1/completions", `{"prompt":"`+text+`","max_tokens":0,"logprobs":1,"echo":true}`, &c)
		now := c.Choices[0].Logprobs.TokenLogprobs
		for i := range before {
			if i > 0 && *before[i] != *now[i] {
				t.Errorf("token %d: %v and %v", i, *before[i], *now[i])
			}
		}
		before = now
	}
	if len(before) != len(text) || devicetest.Vocab == 0 {
		t.Errorf("%d tokens", len(before))
	}
}
