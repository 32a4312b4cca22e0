package jinja

import (
	"encoding/json"
	"os"
	"testing"
)

// TestSnippets compares small templates with Jinja itself, as transformers
// sets it up; tools/gen/reference/jinja.py writes the file.
func TestSnippets(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/snippets.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Context json.RawMessage
		Cases   []struct{ Template, Out, Error string }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	vars, err := FromJSON(file.Context)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		tmpl, err := Parse(c.Template)
		var out Str
		if err == nil {
			out, err = tmpl.Render(vars.(*Dict), Options{})
		}
		switch {
		case err != nil && c.Error == "":
			t.Errorf("%s\n    got error %v\n    want %q", c.Template, err, c.Out)
		case err == nil && c.Error != "":
			t.Errorf("%s\n    got %q\n    want error %s", c.Template, out.String(), c.Error)
		case err == nil && out.String() != c.Out:
			t.Errorf("%s\n    got  %q\n    want %q", c.Template, out.String(), c.Out)
		}
	}
}
