package chat

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadRendered checks that a Reader reads the calls that a template writes: it
// renders an earlier answer and reads it back.
func TestReadRendered(t *testing.T) {
	t.Parallel()
	var given struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(readRendered(t).Conversations["tools"], &given); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(*renderedFlag), "templates/*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	read := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		tmpl, err := Parse(readTemplate(t, name), SpecialTokens{BOS: "<s>", EOS: "</s>"})
		if err != nil {
			t.Fatal(err)
		}
		text, answer := renderedAnswer(tmpl, given.Tools)
		if f := tmpl.callFormat(); text == "" || !f.alone && !f.channels && !strings.Contains(text, f.open) {
			t.Logf("%s writes no calls, or none that are read:\n%s", name, text)
			continue
		}
		read++
		if tmpl.callFormat().channels { // one call per answer
			answer.ToolCalls = answer.ToolCalls[:1]
		}
		for step := range 7 {
			_, _, calls, _ := readAnswerOf(tmpl.callFormat(), ReaderOptions{Tools: true, Reasoning: true, Schemas: given.Tools}, text, 1<<(3*step))
			same := len(calls) == len(answer.ToolCalls)
			for i := 0; same && i < len(calls); i++ {
				want := answer.ToolCalls[i].Function
				same = calls[i].Name == want.Name && sameJSON(calls[i].Arguments, string(want.Arguments))
			}
			if !same {
				t.Errorf("%s: read %+v from\n%s", name, calls, text)
				break
			}
		}
	}
	if read == 0 {
		t.Error("no template writes calls")
	}
}

// renderedAnswer returns the text that a template writes for an answer with as many
// calls, and with ids of such a form, as it accepts.
func renderedAnswer(tmpl *Template, tools []json.RawMessage) (string, Message) {
	calls := []ToolCall{
		{Function: Function{Name: "get_weather", Arguments: json.RawMessage(`{"place": "Zürich's \"old\"\n\n<town>", "days": 3, "items": [{"k": 1.5}, {"k": null, "l": [true, "it's"]}]}`)}},
		{Function: Function{Name: "nothing", Arguments: json.RawMessage(`{}`)}},
	}
	question := Message{Role: "user", Content: "Weather?"}
	var prompts []string
	for _, add := range []bool{true, false} {
		if prompt, err := tmpl.Render([]Message{question}, RenderOptions{Tools: tools, AddGenerationPrompt: add}); err == nil {
			prompts = append(prompts, prompt)
		}
	}
	for _, ids := range [][]string{{"functions.get_weather:0", "functions.nothing:1"}, {"call00001", "call00002"}, {"call00001"}} {
		answer := Message{Role: "assistant", Content: "Let me look."}
		for i, id := range ids {
			calls[i].ID, calls[i].Type = id, "function"
			answer.ToolCalls = append(answer.ToolCalls, calls[i])
		}
		whole, err := tmpl.Render([]Message{question, answer}, RenderOptions{Tools: tools})
		for _, prompt := range prompts {
			if text, ok := strings.CutPrefix(whole, prompt); err == nil && ok && strings.Contains(text, "Zürich") {
				return text, answer
			}
		}
	}
	return "", question
}

// TestCallIDs checks that the model's ids are kept, once each.
func TestCallIDs(t *testing.T) {
	t.Parallel()
	p := newAnswerParser(formatOf("<|tool_calls_section_begin|>"), ReaderOptions{Tools: true})
	text := "<|tool_calls_section_begin|>"
	ids := []string{"functions.f:0", "functions.f-g.h:12", "functions.f:0", "f:1", "functions.f", "functions.f:x", "functions.ü:3", "functions." + strings.Repeat("f", 99) + ":4"}
	for _, id := range ids {
		text += "<|tool_call_begin|>" + id + "<|tool_call_argument_begin|>{}<|tool_call_end|>"
	}
	seen := map[string]bool{}
	for i, c := range p.push(text+"<|tool_calls_section_end|>", true).Calls {
		if (c.ID == ids[i]) != (i < 2) || seen[c.ID] || i >= 2 && len(c.ID) != 9 {
			t.Errorf("%s: id %s", ids[i], c.ID)
		}
		seen[c.ID] = true
		if want := []string{"f", "f-g.h", "f", "f", "f", "f:x", "ü", strings.Repeat("f", 99)}[i]; c.Name != want {
			t.Errorf("%s: name %s", ids[i], c.Name)
		}
	}
	if len(seen) != len(ids) {
		t.Errorf("%d calls", len(seen))
	}
}
