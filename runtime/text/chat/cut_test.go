package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCutCalls checks, for every format, that a call that is cut off at any place leaves no
// markup in the content, in one piece and byte by byte.
func TestCutCalls(t *testing.T) {
	t.Parallel()
	schemas := []json.RawMessage{json.RawMessage(forcedTool)}
	for i := range callFormats {
		format := formatOf(callFormats[i].sign)
		text := spell(format.constraint(), []string{"s", "n"}, []string{`"x y"`, "3"})
		for n := range len(text) + 1 {
			for _, opts := range []ReaderOptions{{Tools: true, Schemas: schemas}, {Tools: true, Schemas: schemas, Forced: true}} {
				whole, pieces := newAnswerParser(format, opts), newAnswerParser(format, opts)
				content := whole.push(text[:n], true).Content
				if n%8 == i%8 {
					if got := pieces.content(text[:n]); got != content {
						t.Errorf("%q: %q in one piece, %q in pieces", text[:n], content, got)
					}
				}
				if content != "" && (opts.Forced || n >= cutMark) {
					t.Errorf("%q: forced %v, content %q", text[:n], opts.Forced, content)
				}
			}
		}
	}
	for text, want := range map[string]string{ // not the beginning of a call
		`<tool_call> is a tag`: `<tool_call> is a tag`, `a <`: `a <`, `a <tool`: `a `, `{"name": "Ann`: `{"name": "Ann`, `{"age": 3`: `{"age": 3`,
	} {
		format := formatOf("<tool_call>")
		if strings.HasPrefix(text, "{") {
			format = formatOf("<|python_tag|>")
		}
		p := newAnswerParser(format, ReaderOptions{Tools: true, Schemas: schemas})
		if got := p.content(text); got != want {
			t.Errorf("%q: content %q, want %q", text, got, want)
		}
	}
}

// content reads a text byte by byte and returns the content.
func (p *answerParser) content(text string) (all string) {
	for i := range len(text) {
		all += p.push(text[i:i+1], false).Content
	}
	return all + p.push("", true).Content
}
