package chat

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestReferenceCalls compares converted values and Python calls with transformers' own
// parser of answers. tools/gen/reference/tool_calls.py writes the file. Where that raises
// an error, our parser need not: it shows the text, or reads what it can.
func TestReferenceCalls(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/tool_calls.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Values []struct {
			Text   string
			Types  []string
			Result json.RawMessage
			Error  string
		}
		Calls []struct {
			Text, Error string
			Result      []struct {
				Name      string
				Arguments json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Values {
		got := convert(c.Text, c.Types)
		ours := slices.Contains(ourValues, c.Text)
		if !json.Valid([]byte(got)) || c.Error == "" && !ours && !sameJSON(got, string(c.Result)) {
			t.Errorf("%q as %v: %s, want %s", c.Text, c.Types, got, c.Result)
		}
	}
	for _, c := range file.Calls {
		for _, step := range []int{1, 3, 1 << 20} {
			content, _, calls, _ := readAnswer(formatOf("List of tools: ["), pythonic.open+c.Text+pythonic.close, step)
			if c.Error != "" || len(c.Result) == 0 {
				continue
			}
			same := len(calls) == len(c.Result) && content == ""
			for i := 0; same && i < len(calls); i++ {
				same = calls[i].Name == c.Result[i].Name && sameJSON(calls[i].Arguments, string(c.Result[i].Arguments))
			}
			if !same {
				t.Errorf("%s: %q, %+v", c.Text, content, calls)
			}
		}
	}
}

// ourValues are read although they are no JSON: models write Python here too.
var ourValues = []string{"[{'a': 1}]"}
