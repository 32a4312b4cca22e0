//go:build unix

package server_test

import (
	"fmt"
	"testing"
)

// TestReasonFirst checks that a format constrains the answer and not the reasoning before
// it, where the prompt has begun the reasoning.
func TestReasonFirst(t *testing.T) {
	t.Parallel()
	s := constrainedOver(t, "{% for m in messages %}{{ m.content }}.{% endfor %}{% if add_generation_prompt %}<think>{% endif %}", "abcdehiknostuy<>/\".", "</think>")
	end, ok := s.cfg.Tokenizer.ID("</think>")
	if !ok {
		t.Fatal("no token ends the reasoning")
	}
	ask := func(keys string) (content, reasoning, finish string) {
		var got struct {
			Choices []struct {
				Finish  string `json:"finish_reason"`
				Message struct {
					Content   string
					Reasoning string `json:"reasoning_content"`
				}
			}
			Error any
		}
		body := `{"messages":[{"role":"user","content":"a"}],"max_tokens":30,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"enum":["yes"]}}},` + keys + `}`
		if status, _ := s.post(t, "/v1/chat/completions", body, &got); status != 200 {
			t.Fatalf("status %d, %+v", status, got.Error)
		}
		m := got.Choices[0].Message
		return m.Content, m.Reasoning, got.Choices[0].Finish
	}
	for _, seed := range []int{1, 2, 3} {
		if content, _, finish := ask(fmt.Sprintf(`"seed":%d,"logit_bias":{"%d":5}`, seed, end)); content != `"yes"` || finish != "stop" {
			t.Errorf("seed %d: %q, %s", seed, content, finish)
		}
	}
	if content, reasoning, finish := ask(fmt.Sprintf(`"logit_bias":{"%d":-100}`, end)); content != "" || reasoning == "" || finish != "length" {
		t.Errorf("endless reasoning: %q, %q, %s", content, reasoning, finish)
	}
}
