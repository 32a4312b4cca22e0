//go:build unix

package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestLongPrompt: a prompt that does not fit is refused with its exact number of tokens,
// in the words of each API.
func TestLongPrompt(t *testing.T) {
	t.Parallel()
	s := start(t, nil) // with a context of 512, and a token for each letter
	body := func(n int) string { return fmt.Sprintf(`[{"role":"user","content":%q}]`, strings.Repeat("a", n)) }
	const around = 3 // "u", "." and "A"
	for _, c := range []struct {
		path, body, want string
	}{
		{"/v1/messages", `{"max_tokens":5,"messages":` + body(9000) + `}`, "prompt is too long: 9003 tokens > 512 maximum"},
		{"/v1/messages", `{"max_tokens":5,"messages":` + body(513-around) + `}`, "prompt is too long: 513 tokens > 512 maximum"},
		{"/v1/messages", `{"max_tokens":5,"messages":` + body(512-around) + `}`, "prompt is too long: 512 tokens > 511 maximum"}, // one is for the answer
		{"/v1/messages", `{"max_tokens":5,"messages":` + body(300000) + `}`, "prompt is too long: 300003 tokens > 512 maximum"},
		{"/v1/chat/completions", `{"messages":` + body(9000) + `}`, "maximum context length is 512 tokens; the prompt has 9003;"},
		{"/v1/responses", `{"input":` + body(9000) + `}`, "maximum context length is 512 tokens; the prompt has 9003;"},
		{"/v1/completions", `{"prompt":"` + strings.Repeat("a", 9000) + `"}`, "maximum context length is 512 tokens; the prompt has 9000;"},
		{"/api/generate", `{"prompt":"` + strings.Repeat("a", 9000) + `"}`, "maximum context length is 512 tokens; the prompt has 9003;"},
		{"/api/chat", `{"messages":` + body(9000) + `}`, "maximum context length is 512 tokens; the prompt has 9003;"}, // the last message stays
	} {
		var got struct{ Error any }
		status, _ := s.post(t, c.path, c.body, &got)
		text := fmt.Sprint(got.Error)
		if status != 400 || !strings.Contains(text, c.want) || !strings.HasPrefix(c.path, "/api/") && c.path != "/v1/messages" && !strings.Contains(text, "context_length_exceeded") {
			t.Errorf("%s %.60s: status %d, %s, expected %q", c.path, c.body, status, text, c.want)
		}
	}
	var counted struct {
		Tokens int `json:"input_tokens"`
	}
	if status, _ := s.post(t, "/v1/messages/count_tokens", `{"messages":`+body(9000)+`}`, &counted); status != 200 || counted.Tokens != 9003 {
		t.Errorf("count_tokens: status %d, %+v", status, counted)
	}
}

// TestFullContext: an answer that fills the context says so.
func TestFullContext(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	message := fmt.Sprintf(`"messages":[{"role":"user","content":%q}],"ignore_eos":true`, strings.Repeat("a", 500))
	for _, c := range []struct {
		most int
		want string
	}{{1000, "model_context_window_exceeded"}, {9, "max_tokens"}, {5, "max_tokens"}} {
		var got struct {
			Reason string `json:"stop_reason"`
			Usage  struct{ Output_tokens int }
		}
		if status, _ := s.post(t, "/v1/messages", fmt.Sprintf(`{"max_tokens":%d,%s}`, c.most, message), &got); status != 200 || got.Reason != c.want || got.Usage.Output_tokens != min(c.most, 9) {
			t.Errorf("max_tokens %d: status %d, %+v, expected %s", c.most, status, got, c.want)
		}
	}
	var got struct {
		Choices []struct {
			Finish string `json:"finish_reason"`
		}
	}
	if status, _ := s.post(t, "/v1/chat/completions", `{"max_tokens":1000,`+message+`}`, &got); status != 200 || got.Choices[0].Finish != "length" {
		t.Errorf("status %d, %+v", status, got)
	}
}

// TestOllamaTruncates: Ollama's chats lose their oldest turns, with a warning, but never
// system messages nor the last turn.
func TestOllamaTruncates(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	say := func(role string, letter string, n int) string {
		return fmt.Sprintf(`{"role":%q,"content":%q}`, role, strings.Repeat(letter, n))
	}
	long := strings.Join([]string{say("system", "s", 20), say("user", "a", 200), say("assistant", "b", 150), say("user", "c", 100), say("system", "t", 9), say("assistant", "d", 50), say("user", "e", 30)}, ",")
	kept := strings.Join([]string{say("system", "s", 20), say("user", "c", 100), say("system", "t", 9), say("assistant", "d", 50), say("user", "e", 30)}, ",")
	type answer struct {
		Message struct{ Content string }
		Prompt  int    `json:"prompt_eval_count"`
		Error   string `json:"error"`
	}
	const more = `,"stream":false,"options":{"temperature":0,"num_predict":20}}`
	var whole, short, refused answer
	status, header := s.post(t, "/api/chat", `{"messages":[`+long+`]`+more, &whole)
	if status != 200 || !strings.Contains(header.Get("X-Iflowc-Warning"), "oldest 2 messages were dropped") {
		t.Fatalf("status %d, %v, %+v", status, header, whole)
	}
	status, header = s.post(t, "/api/chat", `{"messages":[`+kept+`]`+more, &short)
	if status != 200 || header.Get("X-Iflowc-Warning") != "" || short != whole {
		t.Errorf("status %d, %v, %+v, expected %+v", status, header, whole, short)
	}
	if status, _ = s.post(t, "/api/chat", `{"truncate":false,"messages":[`+long+`]`+more, &refused); status != 400 || !strings.Contains(refused.Error, "context length") {
		t.Errorf("truncate false: status %d, %+v", status, refused)
	}
}
