package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDescribeTools checks that tools, earlier calls and their results become text for
// templates without tools, and that conversations for other templates are unchanged.
func TestDescribeTools(t *testing.T) {
	t.Parallel()
	tools := []json.RawMessage{[]byte(`{"type": "function", "function": {"name": "f"}}`)}
	messages := []Message{
		{Role: "system", Content: "Be brief."}, {Role: "user", Content: "a"},
		{Role: "assistant", ToolCalls: []ToolCall{{Function: Function{Name: "f", Arguments: []byte(`"{\"x\":1}"`)}}}}, {Role: "tool", Content: "b"},
	}
	const described = `<tools>
{"type":"function","function":{"name":"f"}}
</tools>`
	const history = `<tool_call>
{"name": "f", "arguments": {"x":1}}
</tool_call>`
	for name, c := range map[string]struct{ source, begin string }{
		"system":    {"{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}", "[system]Be brief.\n\nYou may call"},
		"no system": {"{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endfor %}", "[user]You may call"},
		"braces":    {"Q: {query} A: {answer}", "Q: You may call"},
	} {
		tmpl, err := Parse(c.source, SpecialTokens{})
		if err != nil {
			t.Fatal(err)
		}
		list, opts, err := tmpl.DescribeTools(messages, RenderOptions{Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		text, err := tmpl.Render(list, opts)
		if err != nil || !strings.HasPrefix(text, c.begin) || !strings.Contains(text, described) || !strings.Contains(text, history) || !strings.Contains(text, "<tool_response>\nb\n</tool_response>") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if _, _, err := tmpl.DescribeTools(messages[:1], RenderOptions{Tools: tools}); (err == nil) != (name == "system") {
			t.Errorf("%s, no user message: error %v", name, err)
		}
		if list, _, err := tmpl.DescribeTools(messages[:2], RenderOptions{}); err != nil || list[0].Content != messages[0].Content {
			t.Errorf("%s, no tools: %v, %v", name, list, err)
		}
	}
	knows, err := Parse("{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}", SpecialTokens{})
	if err != nil {
		t.Fatal(err)
	}
	if list, opts, err := knows.DescribeTools(messages, RenderOptions{Tools: tools}); err != nil || len(opts.Tools) != 1 || len(list) != len(messages) || len(list[2].ToolCalls) != 1 {
		t.Errorf("a template with tools: %v, %v, %v", list, opts, err)
	}
}
