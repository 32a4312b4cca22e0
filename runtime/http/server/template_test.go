//go:build unix

package server_test

import (
	"strings"
	"testing"
)

// TestApplyTemplate checks prompts, and that requests are refused as by chat completions.
func TestApplyTemplate(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const messages = `"messages":[{"role":"system","content":"Be"},{"role":"user","content":[{"type":"text","text":"Hi"}]}]`
	for keys, want := range map[string]string{
		messages: "sBe.uHi.A", messages + `,"add_generation_prompt":false`: "sBe.uHi.",
		`"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"continue_final_message":true`: "ua.ab",
	} {
		var got struct{ Prompt string }
		if status, _ := s.post(t, "/apply-template", `{`+keys+`}`, &got); status != 200 || got.Prompt != want {
			t.Errorf("%s: status %d, %q, expected %q", keys, status, got.Prompt, want)
		}
	}
	var described struct{ Prompt string }
	s.post(t, "/apply-template", `{`+messages+`,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]}`, &described)
	if !strings.Contains(described.Prompt, "weather") {
		t.Errorf("the tools are missing in %q", described.Prompt)
	}
	for _, keys := range []string{
		``, `"messages":[]`, messages + `,"model":"x"`, messages + `,"tools":[{"type":"x"}]`, messages + `,"chat_template":"{{ messages }}"`,
		`"messages":[{"role":"user","content":"` + strings.Repeat("a", 600) + `"}]`, `"messages":[{"role":"user","content":[{"type":"image_url"}]}]`,
	} {
		var got, chat completion
		status, _ := s.post(t, "/apply-template", `{`+keys+`}`, &got)
		if want, _ := s.post(t, "/v1/chat/completions", `{`+keys+`}`, &chat); status != want || got.Error == nil || got.Error.Message != chat.Error.Message {
			t.Errorf("%.80s: status %d, %+v; chat has %d, %+v", keys, status, got.Error, want, chat.Error)
		}
	}
}
