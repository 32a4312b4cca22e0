//go:build unix

package server_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/http/server"
)

// TestMethods checks paths with methods that they do not have, and the list of models
// with a slash at its end.
func TestMethods(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for request, want := range map[string]string{
		"DELETE /": "GET, POST", "PUT /": "GET, POST", "OPTIONS /": "GET, POST", "GET /inferflow": "POST", "PUT /v1/chat/completions": "POST", "DELETE /v1/models": "GET",
		"PUT /v1/responses/a": "GET, DELETE", "DELETE /nothing": "", "HEAD /": "200", "GET /v1/models/": "200",
	} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequest(method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		status := map[string]int{"": 404, "200": 200}[want]
		if status == 0 {
			status = 405
		}
		if allow := resp.Header.Get("Allow"); resp.StatusCode != status || status == 405 && allow != want || path == "/v1/models/" && !strings.Contains(string(body), `"object":"list"`) {
			t.Errorf("%s: status %d, Allow %q, %s", request, resp.StatusCode, allow, body)
		}
	}
}

// TestHostless checks that a service on a loopback address answers health checks without
// a host name, and nothing else without one.
func TestHostless(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	l := server.Listening{Address: "127.0.0.1:0"}
	listener, err := l.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go server.New(withoutCounts(s.cfg)).Run(t.Context(), listener, l)
	for request, want := range map[string]string{
		"GET /health HTTP/1.0\r\n\r\n": "200", "GET /v1/models HTTP/1.0\r\n\r\n": "403", "GET /health HTTP/1.0\r\nHost: evil.example\r\n\r\n": "403",
		"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n": "200",
	} {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, request)
		got, _ := io.ReadAll(c)
		c.Close()
		if _, status, _ := strings.Cut(string(got), " "); !strings.HasPrefix(status, want) {
			t.Errorf("%q: %.40q, expected %s", request, got, want)
		}
	}
}

// TestContinuousUsage checks the token counts in the chunks of a stream.
func TestContinuousUsage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for path, body := range map[string]string{
		"/v1/chat/completions": `"messages":[{"role":"user","content":"a"}],"n":2`, "/v1/completions": `"prompt":["abcde","fghij"]`,
	} {
		for options, last := range map[string]bool{`{"continuous_usage_stats":true}`: false, `{"continuous_usage_stats":true,"include_usage":true}`: true} {
			events := s.events(t, path, `{`+body+`,"max_tokens":6,"temperature":0,"stream":true,"stream_options":`+options+`}`)
			before, final := 0.0, events[len(events)-1]
			for _, e := range events {
				u, _ := e["usage"].(map[string]any)
				n, _ := u["completion_tokens"].(float64)
				prompt, _ := u["prompt_tokens"].(float64)
				if n < before || n > before+1 || prompt < 4 || u["total_tokens"] != n+prompt {
					t.Errorf("%s: after %v tokens: %v", path, before, e)
				}
				before = n
			}
			if whole := len(final["choices"].([]any)) == 0; before != 12 || whole != last {
				t.Errorf("%s %s: %v", path, options, final)
			}
		}
	}
}

// TestForeignReasoning checks that encrypted reasoning of another service is ignored.
func TestForeignReasoning(t *testing.T) {
	t.Parallel()
	s := apis(t)
	count := func(reasoning string) int {
		var got struct {
			Tokens int `json:"input_tokens"`
		}
		if status, _ := s.post(t, "/v1/responses/input_tokens", `{"input":[{"role":"user","content":"a"},`+reasoning+`{"role":"user","content":"b"}]}`, &got); status != 200 {
			t.Errorf("%s: status %d", reasoning, status)
		}
		return got.Tokens
	}
	none, summary := count(""), count(`{"type":"reasoning","summary":[{"type":"summary_text","text":"c"}]},`)
	for _, foreign := range []string{"gAAAAABo_x-y==", "gAAAAABo", "%", "gICA"} {
		if got := count(`{"type":"reasoning","summary":[],"encrypted_content":"` + foreign + `"},`); got != none {
			t.Errorf("%s: %d tokens, expected %d", foreign, got, none)
		}
		if got := count(`{"type":"reasoning","summary":[{"type":"summary_text","text":"c"}],"encrypted_content":"` + foreign + `"},`); got != summary {
			t.Errorf("%s with a summary: %d tokens, expected %d", foreign, got, summary)
		}
	}
}
