//go:build unix

package server_test

import (
	"strings"
	"testing"
)

// TestEmptyMessages checks messages without text, and refusals.
func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	s := constrained(t, plainTemplate)
	count := func(path, body string) (n int) {
		t.Helper()
		var got struct {
			Input  int `json:"input_tokens"`
			Prompt int `json:"prompt_eval_count"`
			Usage  struct {
				Prompt int `json:"prompt_tokens"`
			}
			Error any
		}
		if status, _ := s.post(t, path, body, &got); status != 200 || got.Error != nil {
			t.Fatalf("%s %s: status %d, %v", path, body, status, got.Error)
		}
		return got.Input + got.Prompt + got.Usage.Prompt
	}
	const next = `,{"role":"assistant","content":"b"},{"role":"user","content":"c"}`
	for _, api := range []struct{ path, before, after string }{
		{"/v1/chat/completions", `{"max_tokens":1,"messages":[`, `]}`}, {"/v1/responses/input_tokens", `{"input":[`, `]}`},
		{"/v1/messages/count_tokens", `{"messages":[`, `]}`}, {"/api/chat", `{"stream":false,"options":{"num_predict":1},"messages":[`, `]}`},
	} {
		want := count(api.path, api.before+`{"role":"user","content":""}`+next+api.after)
		for _, content := range []string{``, `,"content":null`, `,"content":[]`} {
			if api.path == "/api/chat" && strings.Contains(content, "[]") { // Ollama's API has no lists
				continue
			}
			if got := count(api.path, api.before+`{"role":"user"`+content+`}`+next+api.after); got != want {
				t.Errorf("%s %s: %d tokens, expected %d as of an empty text", api.path, content, got, want)
			}
		}
	}
	chat := func(content string) int {
		return count("/v1/chat/completions", `{"max_tokens":1,"messages":[{"role":"assistant","content":`+content+`}]}`)
	}
	if got, want := chat(`[{"type":"text","text":"a"},{"type":"refusal","refusal":"bc"}]`), chat(`"a\nbc"`); got != want {
		t.Errorf("a refusal: %d tokens, expected %d", got, want)
	}
	s.refuses(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"refusal","refusal":"bc"}]}]}`, `messages[0].content[0]: type "refusal"`)
}
