package chat

import (
	"encoding/json"
	"testing"
)

// TestCallFormat checks that a Reader parses calls in the format of CallFormat.
func TestCallFormat(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"{{ tools }}<tool_call>", "{{ '[TOOL_CALLS]' }}", "{{ '<|python_tag|>' }}", "{{ '<|START_ACTION|>' }}", "{query}"} {
		tp, err := Parse(source, SpecialTokens{})
		if err != nil {
			t.Fatal(err)
		}
		f := tp.CallFormat()
		p := newAnswerParser(tp.callFormat(), ReaderOptions{Tools: true})
		if tp.callFormat() == nil {
			continue
		}
		d := p.push(f.Open+`{"`+f.Name+`": "f", "`+f.Arguments+`": {"a": 1}}`+f.Shut, true)
		if len(d.Calls) == 0 || d.Calls[0].Name != "f" || d.Content != "" {
			t.Errorf("%s: %+v", source, d)
		}
	}
}

// TestAnswerWithName checks that where a call is JSON without a marker, JSON with
// another name than a tool's is an answer.
func TestAnswerWithName(t *testing.T) {
	t.Parallel()
	opts := ReaderOptions{Tools: true, Schemas: []json.RawMessage{json.RawMessage(`{"function":{"name":"f"}}`)}}
	for _, c := range []struct {
		answer string
		calls  int
	}{
		{`{"name": "Tom", "age": 5}`, 0}, {`{"name": "Tom", "parameters": {"age": 5}}`, 0}, {`{"name": "f", "parameters": {"age": 5}}`, 1}, {`{"name": "f"}`, 1},
	} {
		format := callFormat{open: "<|python_tag|>", keys: [2]string{"name", "parameters"}, alone: true}
		for _, step := range []int{1, 4, 1000} {
			content, _, calls, _ := readAnswerOf(&format, opts, c.answer, step)
			if len(calls) != c.calls || (content == c.answer) != (c.calls == 0) {
				t.Errorf("%s in steps of %d: content %q, calls %v", c.answer, step, content, calls)
			}
		}
	}
}
