//go:build unix

package server_test

import (
	"fmt"
	"testing"
)

// TestCutCall checks that a call that is cut off is incomplete, and that the
// conversation can go on.
func TestCutCall(t *testing.T) {
	t.Parallel()
	s := apis(t)
	body := `{"input":"hi","max_output_tokens":45,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"guided_regex":` +
		quoted(t, `<tool_call>\n\{"name": "f", "arguments": \{"x": "aaaaaaaaaaaaaaa"\}\}\n</tool_call>`)
	events := s.stream(t, "/v1/responses", body+`,"stream":true}`)
	last := events[len(events)-1]
	if last.name != "response.incomplete" {
		t.Fatalf("events: %v", events)
	}
	for _, e := range events {
		if item, ok := e.data["item"].(map[string]any); ok && e.name == "response.output_item.done" && item["status"] != "incomplete" {
			t.Errorf("a call that was cut off: %v", e)
		}
	}
	id := last.data["response"].(map[string]any)["id"]
	var next response
	if status, _ := s.post(t, "/v1/responses", fmt.Sprintf(`{"input":"on","previous_response_id":%q,"max_output_tokens":2}`, id), &next); status != 200 {
		t.Errorf("continued: status %d, %+v", status, next)
	}
}

// TestHeldLogprobs checks that tokens whose text waits for a stop text keep their
// log-probabilities.
func TestHeldLogprobs(t *testing.T) {
	t.Parallel()
	s := apis(t)
	var got response
	s.post(t, "/v1/responses", `{"input":"hi","max_output_tokens":20,"include":["message.output_text.logprobs"],"stop":["bcx"],"guided_regex":"abcde"}`, &got)
	part := got.Output[0]["content"].([]any)[0].(map[string]any)
	text := ""
	for _, p := range part["logprobs"].([]any) {
		text += p.(map[string]any)["token"].(string)
	}
	if part["text"] != "abcde" || text[:5] != "abcde" {
		t.Errorf("text %v, tokens %q", part["text"], text)
	}
}

// TestToolNames checks which tools tool_choice names.
func TestToolNames(t *testing.T) {
	t.Parallel()
	s := constrained(t, plainTemplate+"{# tools #}")
	const tools = `"tools":[{"type":"function","name":"g"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]},{"type":"namespace","name":"m","tools":[{"type":"function","name":"g"}]}]`
	for choice, want := range map[string]int{
		`{"type":"function","name":"f"}`: 200, `{"type":"function","namespace":"n","name":"f"}`: 200, `{"type":"function","name":"g"}`: 200, `{"type":"function","name":"h"}`: 400,
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`: 200, `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"h"}]}`: 400,
	} {
		var got response
		if status, _ := s.post(t, "/v1/responses", `{"input":"hi","max_output_tokens":2,`+tools+`,"tool_choice":`+choice+`}`, &got); status != want {
			t.Errorf("%s: status %d, %+v", choice, status, got.Error)
		}
	}
}

// TestAllowedTools checks the tools that the prompt of a chat lists, and that a required
// call is one of those that are allowed.
func TestAllowedTools(t *testing.T) {
	t.Parallel()
	s := constrained(t, "{% for t in tools %}{{ t.function.name }}{% endfor %}"+plainTemplate)
	const tools = `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"gg"}},{"type":"function","function":{"name":"hhh"}}]`
	ask := func(choice string) (status, prompt int, call string) {
		var got struct {
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			}
			Choices []struct {
				Message struct {
					Calls []struct{ Function struct{ Name string } } `json:"tool_calls"`
				}
			}
		}
		status, _ = s.post(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"max_tokens":200,`+tools+`,"tool_choice":`+choice+`}`, &got)
		if len(got.Choices) > 0 && len(got.Choices[0].Message.Calls) > 0 {
			call = got.Choices[0].Message.Calls[0].Function.Name
		}
		return status, got.Usage.Prompt, call
	}
	_, all, _ := ask(`"auto"`)
	for choice, want := range map[string]struct {
		status, fewer int
		call          string
	}{
		`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"hhh"}}]}}`: {200, 2, ""},
		`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"gg"}}]}}`:                                          {200, 4, "gg"},
		`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"x"}}]}}`:                                               {status: 400},
		`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`:                                                                                          {status: 400},
		`{"type":"allowed_tools","allowed_tools":{"mode":"some","tools":[{"type":"function","function":{"name":"f"}}]}}`:                                               {status: 400},
		`{"type":"function","function":{"name":"f"}}`:                                                                                                                  {200, 5, "f"},
		`{"type":"function"}`:                {status: 400},
		`{"type":"function","function":"f"}`: {status: 400},
	} {
		status, prompt, call := ask(choice)
		if status != want.status || status == 200 && prompt != all-want.fewer || want.call != "" && call != want.call {
			t.Errorf("%s: status %d, %d tokens of %d, call %q", choice, status, prompt, all, call)
		}
	}
}

// TestPrefill checks that a message continues the last text of the assistant.
func TestPrefill(t *testing.T) {
	t.Parallel()
	s := apis(t)
	var count struct {
		Tokens int `json:"input_tokens"`
	}
	s.post(t, "/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"bc"}]}`, &count)
	if want := len("ua.abc"); count.Tokens != want {
		t.Errorf("%d tokens, expected %d", count.Tokens, want)
	}
}
