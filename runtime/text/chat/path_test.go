package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrorPaths checks that errors of published templates name the message.
func TestErrorPaths(t *testing.T) {
	t.Parallel()
	turn := []Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "b"}}
	call := ToolCall{ID: "x", Type: "function", Function: Function{Name: "f", Arguments: []byte("{}")}}
	for _, c := range []struct {
		template string
		then     []Message
		opts     RenderOptions
		want     string
	}{
		{"llama2", []Message{{Role: "user", Content: "c"}, {Role: "user", Content: "d"}}, RenderOptions{}, "messages[3]: chat template: Roles must alternate"},
		{"llama2", []Message{{Role: "critic", Content: "c"}}, RenderOptions{}, "messages[2]: chat template: Roles must alternate"},
		{"mistral_tools", []Message{{Role: "user", Content: "c"}, {Role: "assistant", ToolCalls: []ToolCall{call}}}, RenderOptions{}, "messages[3]: chat template: Tool call IDs"},
		{"mistral_tools", []Message{{Role: "user", Content: "c"}, {Role: "user", Content: "d"}}, RenderOptions{}, "messages[3]: chat template: After the optional system message"},
		{"qwen3_5", []Message{{Role: "critic", Content: "c"}}, RenderOptions{}, "messages[2]: chat template: Unknown role"},
		{"llama2", []Message{{Role: "user", Content: "c"}, {Role: "assistant"}}, RenderOptions{ContinueFinal: true}, "messages[3]: the last message has no text to continue"},
	} {
		source, err := os.ReadFile(filepath.Join("testdata", "templates", c.template+".jinja"))
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := Parse(string(source), SpecialTokens{BOS: "<s>", EOS: "</s>"})
		if err != nil {
			t.Fatal(err)
		}
		list := append(turn[:len(turn):len(turn)], c.then...)
		for i := range list {
			list[i].Path = fmt.Sprintf("messages[%d]", i)
		}
		if _, err := tmpl.Render(list, c.opts); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.template, err, c.want)
		}
	}
}
