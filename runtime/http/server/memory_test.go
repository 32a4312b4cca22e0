//go:build unix

package server_test

import (
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
)

// TestUnfinishedBodies checks that bodies that never end use at most half of the
// request memory and that other requests are still answered.
func TestUnfinishedBodies(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) { c.Memory = 8 << 20 })
	address, stop := s.run(t, server.Listening{})
	defer stop()
	own := &service{Server: &httptest.Server{URL: "http://" + address}}
	part := strings.Repeat(" ", 500_000)
	for range 32 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n%s", part)
	}
	large := fmt.Sprintf(`{"prompt":"a","max_tokens":1}%s`, part)
	status, code := 0, ""
	for begun := time.Now(); status != 429; time.Sleep(time.Millisecond) {
		if status, code, _ = own.ask(t, "POST", "/v1/completions", large); time.Since(begun) > 20*time.Second {
			t.Fatalf("a large body: status %d %s, not 429", status, code)
		}
	}
	if !strings.Contains(code, "memory_full") {
		t.Errorf("a large body: %s", code)
	}
	large = fmt.Sprintf(`{"prompt":"a","max_tokens":1000000,"n":4,"logprobs":20,"x":"%s"}`, strings.Repeat("x", 4_000_000-100))
	if status, code, _ = own.ask(t, "POST", "/v1/completions", large); status != 400 && status != 429 {
		t.Errorf("more than a client may ever have: %d %s", status, code)
	}
}
