package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReasoningEnd checks that the tokens that end the reasoning of each template are text
// of that template, and that a Reader then finds the answer.
func TestReasoningEnd(t *testing.T) {
	t.Parallel()
	tok := byteTokenizer(t)
	want := map[string]string{ // else "\n</think>\n\n", which Qwen's templates write
		"gemma4":    "\n<channel|>",
		"glm":       "</think>",
		"lfm2":      "</think>",
		"nemotron3": "\n</think>\n",
		"dsml":      "</think>",
		"kimi":      "</think>",
		"harmony":   "<|end|><|start|>assistant<|channel|>final<|message|>",
	}
	files, err := filepath.Glob("testdata/templates/*.jinja")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := Parse(string(source), TokensOf(tok))
		if err != nil {
			t.Fatal(name, err)
		}
		end := tmpl.ReasoningEnd(tok)
		expect := want[name]
		if expect == "" {
			expect = "\n</think>\n\n"
		}
		if got := tok.Decode(end.Close(false, false), false); got != expect {
			t.Errorf("%s: %q ends the reasoning, want %q", name, got, expect)
		}
		r := tmpl.NewReader(tok, nil, ReaderOptions{Reasoning: true})
		begin := tmpl.callFormat().think[0]
		if tmpl.callFormat().channels {
			begin = "<|channel|>analysis<|message|>"
		}
		pushAll(r, tok.Encode(begin+"why", false))
		if !r.Reasoning() {
			t.Errorf("%s: no reasoning after %q", name, begin)
		}
		pushAll(r, end.Close(true, true))
		if r.Reasoning() {
			t.Errorf("%s: still reasoning after %q", name, expect)
		}
		text := ""
		for _, d := range append(pushAll(r, tok.Encode("Yes.", false)), r.Flush()) {
			text += d.Content
		}
		if text != "Yes." {
			t.Errorf("%s: answer %q", name, text)
		}
	}
}

// TestBlankReasoning checks that reasoning that a prompt begins and that is ended at once is
// none, also if there are line feeds between its markers.
func TestBlankReasoning(t *testing.T) {
	t.Parallel()
	tok := byteTokenizer(t)
	source, err := os.ReadFile("testdata/templates/deepseek.jinja")
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := Parse(string(source), TokensOf(tok))
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{"\n</think>\n\nYes.": "", "\n\nwhy\n</think>\n\nYes.": "why\n"} {
		r := tmpl.NewReader(tok, tok.Encode("a<think>\n", false), ReaderOptions{Reasoning: true})
		text, reasoning := "", ""
		for _, d := range append(pushAll(r, tok.Encode(answer, false)), r.Flush()) {
			text, reasoning = text+d.Content, reasoning+d.Reasoning
		}
		if text != "Yes." || reasoning != want {
			t.Errorf("%q: reasoning %q, content %q", answer, reasoning, text)
		}
	}
}
