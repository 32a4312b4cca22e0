//go:build unix

package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestContentParts checks that text parts are joined and other parts are refused.
func TestContentParts(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const ask = `{"messages":[{"role":"user","content":%s}],"max_tokens":8,"temperature":0%s}`
	var list completion
	if status, _ := s.post(t, "/v1/chat/completions", fmt.Sprintf(ask, `[{"type":"text","text":"Hi"}]`, ""), &list); status != 200 || list.Choices[0].Message.Content != s.greedy("uHi.A", 8) {
		t.Errorf("%d, %+v", status, list)
	}
	for content, more := range map[string]string{
		`[{"type":"image_url","image_url":{"url":"data:,"}}]`: "", `[{"type":"text"}]`: "", `["a"]`: "", `"a"`: `,"functions":[{"name":"f"}]`,
	} {
		var c completion
		if status, _ := s.post(t, "/v1/chat/completions", fmt.Sprintf(ask, content, more), &c); status != 400 || c.Error == nil || c.Error.Param == nil {
			t.Errorf("%s: status %d, %+v", content, status, c.Error)
		}
	}
}

// TestEchoStream checks that the prompt and its log-probabilities come first.
func TestEchoStream(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const ask = `{"prompt":["Hello","World"],"n":2,"max_tokens":%d,"temperature":0,"echo":true,"logprobs":1%s}`
	for _, most := range []int{0, 5} {
		var whole completion
		if status, _ := s.post(t, "/v1/completions", fmt.Sprintf(ask, most, ""), &whole); status != 200 {
			t.Fatal(status, whole.Error)
		}
		texts, tokens := make([]strings.Builder, 4), make([]int, 4)
		for _, e := range s.events(t, "/v1/completions", fmt.Sprintf(ask, most, `,"stream":true`)) {
			for _, c := range e["choices"].([]any) {
				choice := c.(map[string]any)
				at := int(choice["index"].(float64))
				texts[at].WriteString(choice["text"].(string))
				tokens[at] += len(choice["logprobs"].(map[string]any)["tokens"].([]any))
			}
		}
		for i, c := range whole.Choices {
			if texts[i].String() != c.Text || tokens[i] != len(c.Logprobs.Tokens) {
				t.Errorf("at most %d, choice %d: streamed %q (%d tokens), whole %q (%d)", most, i, texts[i].String(), tokens[i], c.Text, len(c.Logprobs.Tokens))
			}
		}
	}
}
