//go:build unix

package server_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestOllamaClients checks what Ollama's clients send and expect: defaults that they write
// out, names with a tag, the older embeddings, and a pull before each chat.
func TestOllamaClients(t *testing.T) {
	t.Parallel()
	s := apis(t)
	handler := s.handlers(t)("")
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/api/chat", `{"model":"FAKE:latest","stream":false,"messages":[` + user + `],"options":{"num_predict":2.0,"repeat_last_n":64,"repeat_penalty":1.1,"num_ctx":1048576,"top_k":4e1}}`, `"model":"FAKE:latest"`},
		{"POST", "/api/chat", `{"stream":false,"messages":[` + user + `],"options":{"num_predict":2,"penalize_newline":false}}`, `"done":true`},
		{"POST", "/api/generate", `{"stream":false,"prompt":"a","options":{"num_predict":2,"repeat_last_n":0}}`, `"model":"fake:latest"`},
		{"GET", "/api/version", "", `{"version":"0.12.11"}`},
		{"GET", "/api/ps", "", `"model":"fake:latest"`},
		{"POST", "/api/embeddings", `{"model":"fake:latest","prompt":"ab"}`, `{"embedding":[`},
		{"POST", "/api/embeddings", `{"model":"fake"}`, `{"embedding":[]}`},
		{"POST", "/api/pull", `{"model":"fake","stream":false}`, `{"status":"success"}`},
		{"POST", "/api/pull", `{"name":"fake:latest"}`, "{\"status\":\"writing manifest\"}\n{\"status\":\"success\"}\n"},
		{"POST", "/api/show", `{"model":"fake:latest"}`, `"capabilities"`},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		status, text := w.Code, w.Body.String()
		if status != 200 || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: status %d, %s; want %s", c.path, c.body, status, text, c.want)
		}
		want := ""
		for key, text := range map[string]string{"num_ctx": "num_ctx: 1048576 was lowered", "penalize_newline": "penalize_newline: penalties count all tokens"} {
			if strings.Contains(c.body, key) {
				want = text
			}
		}
		if got := w.Header().Get("X-Iflowc-Warning"); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s %s: warning %q", c.path, c.body, got)
		}
	}
	var raw json.RawMessage
	if status, _ := s.post(t, "/api/pull", `{}`, &raw); status != 400 || !strings.HasPrefix(refusal(raw), "model:") {
		t.Errorf("a pull of nothing: status %d, %s", status, raw)
	}
	for _, path := range []string{"/api/pull", "/api/embeddings"} {
		var raw json.RawMessage
		if status, _ := s.post(t, path, `{"model":"other","prompt":"a"}`, &raw); status != 404 || !strings.HasPrefix(refusal(raw), "the model") {
			t.Errorf("%s: status %d, %s", path, status, raw)
		}
	}
}
