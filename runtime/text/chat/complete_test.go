package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestSparseTools checks that no template refuses tools without description, parameters or
// properties, or calls whose arguments are blank or were cut off, and that tools a template can read
// stay as they are.
func TestSparseTools(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/templates/*.jinja")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	const history = `[{"role":"user","content":"a"},
		{"role":"assistant","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":" "}}]},
		{"role":"tool","tool_call_id":"abcdefghi","name":"f","content":"b"},
		{"role":"assistant","tool_calls":[{"id":"abcdefghj","type":"function","function":{"name":"f","arguments":"{\"a\": \"b"}}]},
		{"role":"tool","tool_call_id":"abcdefghj","name":"f","content":"b"}]`
	var messages []Message
	if err := json.Unmarshal([]byte(history), &messages); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := Parse(string(source), SpecialTokens{BOS: "<s>", EOS: "</s>"})
		if err != nil {
			t.Fatal(file, err)
		}
		for _, function := range []string{`{"name":"f"}`, `{"name":"f","parameters":{}}`, `{"name":"f","parameters":true}`, `{"name":"f","parameters":{"type":"object","properties":null}}`, `{"name":"f","description":"d"}`} {
			list, opts, err := tmpl.DescribeTools(tmpl.KnownRoles(messages), RenderOptions{Tools: []Part{Part(`{"type":"function","function":` + function + `}`)}})
			if err != nil {
				t.Fatal(file, err)
			}
			if _, err := tmpl.Render(list, opts); err != nil {
				t.Errorf("%s, %s: %v", filepath.Base(file), function, err)
			}
		}
	}
	plain, err := Parse("{{ tools | tojson }}", SpecialTokens{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := plain.Render(messages, RenderOptions{Tools: []Part{Part(`{"function":{"name":"f"}}`)}}); got != `[{"function": {"name": "f"}}]` || err != nil {
		t.Error(got, err)
	}
}
