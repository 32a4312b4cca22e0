//go:build unix

package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestOllamaLoad checks requests that load the model, and that they generate nothing.
func TestOllamaLoad(t *testing.T) {
	t.Parallel()
	s := apis(t)
	for _, keys := range []string{``, `"keep_alive":0`, `"keep_alive":"5m","stream":false`, `"system":"a","raw":true,"prompt":""`, `"messages":[]`} {
		for _, path := range []string{"/api/chat", "/api/generate"} {
			var got struct {
				Message  *struct{ Role, Content string }
				Response *string
				Done     bool
				Reason   string `json:"done_reason"`
				Count    *int   `json:"eval_count"`
			}
			status, header := s.post(t, path, `{`+keys+`}`, &got)
			if status != 200 || !got.Done || got.Reason != "load" || got.Count != nil || !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
				t.Errorf("%s %s: status %d, %+v", path, keys, status, got)
			}
			if path == "/api/chat" && (got.Message == nil || got.Message.Role != "assistant") || path == "/api/generate" && got.Response == nil {
				t.Errorf("%s %s: %+v", path, keys, got)
			}
		}
	}
	var refused struct{ Error string }
	if status, _ := s.post(t, "/api/generate", `{"model":"other"}`, &refused); status != 404 || refused.Error == "" {
		t.Errorf("another model: status %d, %+v", status, refused)
	}
	for _, predict := range []int{0, -1, -2} { // no limit
		var got struct {
			Response string
			Reason   string `json:"done_reason"`
		}
		if s.post(t, "/api/generate", fmt.Sprintf(`{"prompt":"a","stream":false,"format":{"enum":["yes"]},"options":{"num_predict":%d}}`, predict), &got); got.Response != `"yes"` || got.Reason != "stop" {
			t.Errorf("num_predict %d: %+v", predict, got)
		}
	}
	s.refuses(t, "/api/embed", `{"input":[]}`, "input: expected a text")
	s.refuses(t, "/v1/embeddings", `{"input":[]}`, "input: expected a text")
}
