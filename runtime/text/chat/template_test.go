package chat

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/text/jinja"
)

// renderedFlag lets the tests compare renderings of other templates, such as those of
// published models.
var renderedFlag = flag.String("rendered", "testdata/rendered.json", "output of chat_templates.py, next to a folder `templates`")

// rendered is the format of testdata/rendered.json, which
// tools/gen/reference/chat_templates.py writes with transformers.
type rendered struct {
	Conversations map[string]json.RawMessage
	Tokens        json.RawMessage
	Cases         []struct{ Template, Conversation, Text, Error string }
}

func readRendered(t *testing.T) *rendered {
	t.Helper()
	data, err := os.ReadFile(*renderedFlag)
	if err != nil {
		t.Fatal(err)
	}
	r := &rendered{}
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	return r
}

var testNow = time.Date(2025, 3, 4, 5, 6, 7, 89000, time.UTC)

func readTemplate(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(filepath.Dir(*renderedFlag), "templates", name+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// TestRenderedRaw renders the unchanged inputs that transformers passes to Jinja.
func TestRenderedRaw(t *testing.T) {
	t.Parallel()
	r := readRendered(t)
	for _, c := range r.Cases {
		given := string(r.Conversations[c.Conversation])
		if c.Conversation == "continue" || strings.Contains(given, `"reasoning_content"`) || strings.Contains(given, `"thinking"`) {
			continue // transformers changes these before it renders
		}
		tmpl, err := jinja.Parse(readTemplate(t, c.Template))
		if err != nil {
			t.Fatalf("%s: %v", c.Template, err)
		}
		vars := jinja.NewDict()
		for _, pair := range []struct{ name, value string }{{"tools", "null"}, {"documents", "null"}, {"add_generation_prompt", "true"}} {
			v, _ := jinja.FromJSON([]byte(pair.value))
			vars.Set(pair.name, v)
		}
		for _, data := range []json.RawMessage{r.Conversations[c.Conversation], r.Tokens} {
			fields, err := objectFields(data)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fields {
				v, err := jinja.FromJSON(f.Value)
				if err != nil {
					t.Fatal(err)
				}
				vars.Set(f.Key, v)
			}
		}
		out, err := tmpl.Render(vars, jinja.Options{Now: testNow})
		switch {
		case (err != nil) != (c.Error != ""):
			t.Errorf("%s, %s: error %v, want %q", c.Template, c.Conversation, err, c.Error)
		case err == nil && out.String() != c.Text:
			t.Errorf("%s, %s:\ngot  %q\nwant %q", c.Template, c.Conversation, out.String(), c.Text)
		}
	}
}

// conversation decodes one of the conversations as the server does.
func conversation(t *testing.T, data json.RawMessage) ([]Message, RenderOptions) {
	t.Helper()
	var c struct {
		Messages  []Message
		Tools     []json.RawMessage
		Documents []json.RawMessage
		Prompt    *bool `json:"add_generation_prompt"`
		Continue  bool  `json:"continue_final_message"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	opts := RenderOptions{
		Tools: c.Tools, Documents: c.Documents, AddGenerationPrompt: c.Prompt == nil || *c.Prompt,
		ContinueFinal: c.Continue, Variables: map[string]any{}, Now: testNow,
	}
	fields, err := objectFields(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		switch f.Key {
		case "messages", "tools", "documents", "add_generation_prompt", "continue_final_message":
		default:
			opts.Variables[f.Key] = f.Value
		}
	}
	return c.Messages, opts
}

// TestRendered renders messages. Where transformers raises an error because a template
// does not support lists of parts or argument objects, we render; where calls hold
// their arguments as text, templates get the object.
func TestRendered(t *testing.T) {
	t.Parallel()
	r := readRendered(t)
	for _, c := range r.Cases {
		tmpl, err := Parse(readTemplate(t, c.Template), SpecialTokens{BOS: "<s>", EOS: "</s>", PAD: "<pad>"})
		if err != nil {
			t.Fatalf("%s: %v", c.Template, err)
		}
		messages, opts := conversation(t, r.Conversations[c.Conversation])
		text, err := tmpl.Render(messages, opts)
		adapted := strings.Contains(c.Error, "can only concatenate str") && !strings.Contains(c.Error, "NoneType") ||
			c.Conversation == "parts" && c.Template != "gemma_parts"
		// Where transformers writes None for a null content, or fails, we leave it out.
		filled := c.Conversation == "call null" && (strings.Contains(c.Error, "None") || strings.Contains(c.Error, "content") || c.Template == "glm")
		switch {
		case filled && (err != nil && !strings.Contains(err.Error(), "alternate") || strings.Contains(strings.ReplaceAll(text, "[1.5, None", ""), "None")):
			t.Errorf("%s, %s: %q, error %v; want no content", c.Template, c.Conversation, text, err)
		case filled:
		case adapted && (err != nil || c.Conversation == "parts" && !strings.Contains(text, "Look")):
			t.Errorf("%s, %s: %q, error %v; want adapted content or arguments", c.Template, c.Conversation, text, err)
		case adapted, c.Conversation == "call text":
		case (err != nil) != (c.Error != ""):
			t.Errorf("%s, %s: error %v, want %q", c.Template, c.Conversation, err, c.Error)
		case err == nil && text != c.Text:
			t.Errorf("%s, %s:\ngot  %q\nwant %q", c.Template, c.Conversation, text, c.Text)
		}
	}
}
