//go:build unix

package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forcedAnswer is a regular expression for an answer with reasoning, a text and a call.
const forcedAnswer = `<think>\nab</think>\n\ncd<tool_call>\n\{"name": "f", "arguments": \{"x": "a"\}\}\n</tool_call>`

// Tools with the function f in the form of each API.
const (
	responsesTools = `"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`
	messagesTools  = `"tools":[{"name":"f","input_schema":{"type":"object"}}]`
	ollamaTools    = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
)

// apis starts a service whose answers contain reasoning.
func apis(t *testing.T) *service {
	return constrained(t, plainTemplate+"{# <think> #}")
}

// quoted returns a text as JSON.
func quoted(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// An apiEvent is a server-sent event with its name.
type apiEvent struct {
	name string
	data map[string]any
}

// stream sends a request and returns the events of the answer.
func (s *service) stream(t *testing.T, path, body string) (list []apiEvent) {
	t.Helper()
	resp, err := http.Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	name, lines := "", bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "event: "); ok {
			name = rest
			continue
		}
		line = strings.TrimPrefix(line, "data: ")
		if line == "" {
			continue
		}
		e := apiEvent{name: name}
		if err := json.Unmarshal([]byte(line), &e.data); err != nil {
			t.Fatalf("%s: %v: %s", path, err, line)
		}
		list = append(list, e)
	}
	return list
}

// TestMessages checks the content of a message, whole and streamed.
func TestMessages(t *testing.T) {
	t.Parallel()
	s := apis(t)
	body := `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"system":"be","max_tokens":200,` + messagesTools + `,"guided_regex":` + quoted(t, forcedAnswer)
	want := []any{
		map[string]any{"type": "thinking", "thinking": "ab", "signature": ""}, map[string]any{"type": "text", "text": "cd"},
		map[string]any{"type": "tool_use", "name": "f", "input": map[string]any{"x": "a"}},
	}
	var whole struct {
		Role    string
		Content []any
		Stop    string `json:"stop_reason"`
		Usage   struct {
			Input, Read, Output int `json:"-"`
		}
	}
	status, _ := s.post(t, "/v1/messages", body+"}", &whole)
	for _, b := range whole.Content {
		delete(b.(map[string]any), "id")
	}
	if diff := cmp.Diff(want, whole.Content); status != 200 || diff != "" || whole.Stop != "tool_use" || whole.Role != "assistant" {
		t.Errorf("status %d, %+v: %s", status, whole, diff)
	}
	events := s.stream(t, "/v1/messages", body+`,"stream":true}`)
	if diff := cmp.Diff(want, streamedMessage(t, events)); diff != "" {
		t.Errorf("streamed: %s", diff)
	}
	var stopped struct {
		Stop     string `json:"stop_reason"`
		Sequence string `json:"stop_sequence"`
		Content  []struct{ Text string }
	}
	s.post(t, "/v1/messages", `{"messages":[{"role":"user","content":"a"}],"max_tokens":20,"stop_sequences":["ll"],"guided_regex":"hello"}`, &stopped)
	if stopped.Stop != "stop_sequence" || stopped.Sequence != "ll" || len(stopped.Content) != 1 || stopped.Content[0].Text != "he" {
		t.Errorf("stop sequence: %+v", stopped)
	}
}

// streamedMessage checks the order of a message's events and returns its content.
func streamedMessage(t *testing.T, events []apiEvent) (content []any) {
	t.Helper()
	if n := len(events); n < 3 || events[0].name != "message_start" || events[n-2].name != "message_delta" || events[n-1].name != "message_stop" {
		t.Fatalf("events: %v", events)
	}
	var open map[string]any
	text := ""
	for _, e := range events[1 : len(events)-2] {
		switch e.name {
		case "content_block_start":
			if open != nil || e.data["index"] != float64(len(content)) {
				t.Errorf("a block inside a block: %v", e)
			}
			open, text = e.data["content_block"].(map[string]any), ""
		case "content_block_delta":
			for key, v := range e.data["delta"].(map[string]any) {
				if key != "type" {
					text += v.(string)
				}
			}
		case "content_block_stop":
			delete(open, "id")
			if open["type"] == "tool_use" {
				var input any
				if err := json.Unmarshal([]byte(text), &input); err != nil {
					t.Error(err)
				}
				open["input"] = input
			} else {
				open[open["type"].(string)] = text
			}
			content, open = append(content, open), nil
		default:
			t.Errorf("event %v", e)
		}
	}
	return content
}

// TestOllama checks the answers of Ollama's API, whole and streamed.
func TestOllama(t *testing.T) {
	t.Parallel()
	s := apis(t)
	schema := `"format":{"enum":["yes"]}`
	body := `{"messages":[{"role":"user","content":"hi"}],"options":{"num_predict":30},` + schema
	var whole struct {
		Message struct{ Role, Content string }
		Done    bool
		Reason  string `json:"done_reason"`
		Prompt  int    `json:"prompt_eval_count"`
		Count   int    `json:"eval_count"`
	}
	status, _ := s.post(t, "/api/chat", body+`,"stream":false}`, &whole)
	if m := whole.Message; status != 200 || m.Role != "assistant" || m.Content != `"yes"` || !whole.Done || whole.Reason != "stop" || whole.Prompt == 0 || whole.Count == 0 {
		t.Errorf("status %d, %+v", status, whole)
	}
	text := ""
	events := s.stream(t, "/api/chat", body+"}")
	for _, e := range events {
		text += e.data["message"].(map[string]any)["content"].(string)
	}
	if last := events[len(events)-1].data; text != `"yes"` || last["done"] != true || last["eval_count"] != float64(whole.Count) || len(events) < 3 {
		t.Errorf("streamed: %q, %v", text, last)
	}
	for _, raw := range []string{"true", "false"} {
		text = ""
		events = s.stream(t, "/api/generate", `{"prompt":"hi","raw":`+raw+`,"options":{"num_predict":30},`+schema+`}`)
		for _, e := range events {
			text += e.data["response"].(string)
		}
		if text != `"yes"` || events[len(events)-1].data["done"] != true {
			t.Errorf("raw %s: %q, %v", raw, text, events[len(events)-1])
		}
	}
	var show struct{ Capabilities []string }
	if status, _ := s.post(t, "/api/show", `{"model":"fake"}`, &show); status != 200 || !slices.Equal(show.Capabilities, []string{"completion", "tools", "thinking", "embedding"}) {
		t.Errorf("show: status %d, %+v", status, show)
	}
}

// TestOllamaModels checks the lists of models, and embeddings against those of OpenAI's
// API.
func TestOllamaModels(t *testing.T) {
	t.Parallel()
	s := apis(t)
	for _, path := range []string{"/api/tags", "/api/ps"} {
		var list struct{ Models []struct{ Name string } }
		resp, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(resp.Body).Decode(&list)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || len(list.Models) != 1 || list.Models[0].Name != "fake:latest" {
			t.Errorf("%s: status %d, %v, %+v", path, resp.StatusCode, err, list)
		}
	}
	var want struct {
		Data []struct{ Embedding []float32 }
	}
	var got struct {
		Embeddings [][]float32
		Count      int `json:"prompt_eval_count"`
	}
	s.post(t, "/v1/embeddings", `{"input":["ab","c"],"dimensions":3}`, &want)
	status, _ := s.post(t, "/api/embed", `{"input":["ab","c"],"dimensions":3,"keep_alive":"5m"}`, &got)
	if status != 200 || len(got.Embeddings) != 2 || got.Count == 0 {
		t.Fatalf("status %d, %+v", status, got)
	}
	for i := range got.Embeddings {
		if !slices.Equal(got.Embeddings[i], want.Data[i].Embedding) || len(got.Embeddings[i]) != 3 {
			t.Errorf("text %d: %v, expected %v", i, got.Embeddings[i], want.Data[i].Embedding)
		}
	}
}

// TestErrorFormats checks that each API gets errors in its own format.
func TestErrorFormats(t *testing.T) {
	t.Parallel()
	s := apis(t)
	for path, want := range map[string]map[string]any{
		"/v1/messages": {"type": "error", "error": map[string]any{"type": "not_found_error", "message": "the model \"other\" does not exist; this service serves \"fake\""}},
		"/api/chat":    {"error": "the model \"other\" does not exist; this service serves \"fake\""},
	} {
		var got map[string]any
		status, _ := s.post(t, path, `{"model":"other","max_tokens":1,"messages":[{"role":"user","content":"a"}]}`, &got)
		if diff := cmp.Diff(want, got); status != 404 || diff != "" {
			t.Errorf("%s: status %d: %s", path, status, diff)
		}
	}
}

// TestRequiredCallWithFormat checks that a format of the text does not exclude a
// required call, and that a constraint of the whole answer does.
func TestRequiredCallWithFormat(t *testing.T) {
	t.Parallel()
	s := apis(t)
	var got struct{ Output []struct{ Type string } }
	body := `{"input":"hi","max_output_tokens":200,` + responsesTools + `,"tool_choice":"required"`
	status, _ := s.post(t, "/v1/responses", body+`,"text":{"format":{"type":"json_schema","name":"a","schema":{"enum":["yes"]}}}}`, &got)
	if status != 200 || len(got.Output) != 1 || got.Output[0].Type != "function_call" {
		t.Errorf("status %d, %+v", status, got)
	}
	var refused struct {
		Error struct{ Message, Param string }
	}
	if status, _ := s.post(t, "/v1/responses", body+`,"guided_regex":"a"}`, &refused); status != 400 || refused.Error.Param != "guided_regex" {
		t.Errorf("status %d, %+v", status, refused)
	}
}

// TestCallOrFormat checks that a model may call a tool or answer in the format.
func TestCallOrFormat(t *testing.T) {
	t.Parallel()
	s := apis(t)
	seen := map[string]bool{}
	for seed := range 40 {
		var got struct{ Output []map[string]any }
		body := fmt.Sprintf(`{"input":"hi","max_output_tokens":200,"seed":%d,"temperature":1,"text":{"format":{"type":"json_schema","name":"a","schema":{"enum":["yes"]}}},`, seed) +
			`"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"x":{"enum":["a"]}},"required":["x"],"additionalProperties":false}}]}`
		if status, _ := s.post(t, "/v1/responses", body, &got); status != 200 || len(got.Output) != 1 {
			t.Fatalf("status %d, %+v", status, got)
		}
		kind := got.Output[0]["type"].(string)
		if seen[kind] = true; kind == "function_call" && strings.ReplaceAll(got.Output[0]["arguments"].(string), " ", "") != `{"x":"a"}` {
			t.Errorf("arguments %v", got.Output[0]["arguments"])
		}
	}
	if !seen["function_call"] || !seen["message"] {
		t.Errorf("seen: %v, expected function_call and message", seen)
	}
}
