package chat

import "testing"

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
