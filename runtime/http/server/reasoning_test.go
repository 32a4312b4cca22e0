//go:build unix

package server_test

import (
	"fmt"
	"regexp"
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

// oneToken is the text of a token of the fake model: a letter, or its id.
var oneToken = regexp.MustCompile(`(?s)-\d+|<unk>|.`)

// A reply is the reasoning and the text, or the call, of an answer.
type reply struct{ reasoning, text string }

// reasonedReply asks for an answer in the format of any API.
func reasonedReply(t *testing.T, s *service, path, body string) (out reply) {
	t.Helper()
	var got struct {
		Choices []struct {
			Message struct {
				Content   string
				Reasoning string `json:"reasoning_content"`
				Calls     []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
		Content []struct{ Thinking, Text string }
		Output  []struct {
			Type    string
			Content []struct{ Text string }
		}
		Message struct{ Content, Thinking string }
		Error   any
	}
	if status, _ := s.post(t, path, body, &got); status != 200 {
		t.Fatalf("%s: status %d, %+v", body, status, got.Error)
	}
	if len(got.Choices) > 0 {
		m := got.Choices[0].Message
		if len(m.Calls) > 0 {
			return reply{m.Reasoning, m.Calls[0].Function.Name + m.Calls[0].Function.Arguments}
		}
		return reply{m.Reasoning, m.Content}
	}
	for _, c := range got.Content {
		out.reasoning += c.Thinking
		out.text += c.Text
	}
	for _, c := range got.Output {
		for _, p := range c.Content {
			if c.Type == "reasoning" {
				out.reasoning += p.Text
			} else {
				out.text += p.Text
			}
		}
	}
	out.reasoning += got.Message.Thinking
	out.text += got.Message.Content
	return out
}

// TestReasoningBudget checks that reasoning ends after its budget in the template's words,
// in each API, with structured output, with tools and with drafts.
func TestReasoningBudget(t *testing.T) {
	t.Parallel()
	const source = "{% for m in messages %}{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>y{% endif %}{{ m.content }}.{% endfor %}" +
		"{% if add_generation_prompt %}{% if enable_thinking is defined and not enable_thinking %}<think></think>{% else %}<think>{% endif %}{% endif %}"
	s := constrainedOver(t, source, "abcdehiknostuy<>/\".{}[]:,mrg_lpfĠĊ", "</think>")
	end, _ := s.cfg.Tokenizer.ID("</think>")
	never := fmt.Sprintf(`"logit_bias":{"%d":-100},"seed":3`, end)
	const chat, messages, responses, ollama = "/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat"
	ask := `"messages":[{"role":"user","content":"a"}],`
	const schema = `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"enum":["yes"]}}},`
	for _, c := range []struct {
		path, body string
		budget     int
		text       string // "": starts with what the template writes after reasoning
	}{
		{chat, ask + `"thinking_token_budget":5,"max_tokens":20,`, 5, ""},
		{chat, ask + `"reasoning_budget_tokens":4,"max_tokens":20,`, 4, ""},
		{chat, ask + `"thinking":{"type":"enabled","budget_tokens":3},"max_tokens":20,`, 3, ""},
		{chat, ask + `"reasoning_effort":"none","max_tokens":20,`, 0, ""},
		{chat, ask + `"thinking":{"type":"disabled"},"max_tokens":20,`, 0, ""},
		{chat, ask + schema + `"thinking_token_budget":5,"max_tokens":30,`, 5, `y"yes"`},
		{chat, ask + `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","additionalProperties":false}}}],"tool_choice":"required","thinking_token_budget":5,"max_tokens":90,`, 5, "f{}"},
		{messages, ask + `"thinking":{"type":"enabled","budget_tokens":6},"max_tokens":20,`, 6, ""},
		{responses, `"input":"a","thinking_token_budget":6,"max_output_tokens":20,`, 6, ""},
		{responses, `"input":"a","reasoning":{"effort":"none"},"max_output_tokens":20,`, 0, ""},
	} {
		got := reasonedReply(t, s, c.path, "{"+c.body+never+"}")
		if n := len(oneToken.FindAllString(got.reasoning, -1)); n != c.budget || c.text != "" && got.text != c.text || c.text == "" && len(got.text) < 2 || c.text == "" && c.budget > 0 && got.text[0] != 'y' {
			t.Errorf("%s %s: %d tokens of reasoning, want %d; text %q", c.path, c.body, n, c.budget, got.text)
		}
		if drafted := reasonedReply(t, s, c.path, "{"+c.body+never+`,"speculate":"greedy"}`); drafted != got {
			t.Errorf("%s %s: %+v, with drafts %+v", c.path, c.body, got, drafted)
		}
	}
	if got := reasonedReply(t, s, ollama, `{"messages":[{"role":"user","content":"a"}],"stream":false,"think":false,"options":{"num_predict":9,"seed":3}}`); got.reasoning != "" || got.text == "" {
		t.Errorf("think: false: %+v", got)
	}
	var wrong struct{ Error struct{ Param string } }
	if status, _ := s.post(t, chat, "{"+ask+`"thinking_token_budget":"x"}`, &wrong); status != 400 || wrong.Error.Param != "thinking_token_budget" {
		t.Errorf("a budget that is no number: status %d, %+v", status, wrong)
	}
	for _, body := range []string{`"reasoning_effort":"banana"`, `"thinking_token_budget":-2`, `"thinking":{"type":"maybe"}`} {
		if status, _ := s.post(t, chat, "{"+ask+body+"}", nil); status != 400 {
			t.Errorf("%s: status %d", body, status)
		}
	}
}
