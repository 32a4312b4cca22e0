package chat

import (
	"encoding/json"
	"testing"
)

// FuzzTemplate checks that no template in either language, and no message, panics.
func FuzzTemplate(f *testing.F) {
	for _, name := range Names() {
		source, _ := builtin(name)
		f.Add(source, `{"role": "user", "content": "x"}`)
	}
	f.Add("{#1}{bos}{<s>}{\\n}{query}", `{"role": "assistant", "content": [{"type": "text", "text": "<s>"}], "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}`)
	tok := byteTokenizer(f)
	f.Fuzz(func(t *testing.T, source, message string) {
		var m Message
		if json.Unmarshal([]byte(message), &m) != nil {
			return
		}
		if len(source) > 500 { // Parse probes run under the default limits
			return
		}
		tmpl, err := Parse(source, TokensOf(tok))
		if err != nil {
			return
		}
		p, err := tmpl.Encode(tok, []Message{m}, RenderOptions{AddGenerationPrompt: true})
		if err != nil {
			return
		}
		r := tmpl.NewReader(tok, p.IDs, ReaderOptions{Tools: true, Reasoning: true})
		for _, id := range tok.Encode(message, false) {
			r.Push(id)
		}
		r.Flush()
	})
}

// FuzzAnswer checks that the result does not depend on how an answer is split, and that
// no text other than markers and calls is lost.
func FuzzAnswer(f *testing.F) {
	f.Add("a<tool_call>{\"name\":\"f\"}</tool_call>b", uint8(1))
	f.Add("<think>x</think> y <tool_c", uint8(3))
	f.Add(`<tool_call>[{"name":"f","arguments":{"a":"}\""},"id":1},{"arguments":{},"name":"g"}]</tool_call>`, uint8(2))
	f.Add(`<tool_call>{"name":"</tool_call>","arguments":{}`, uint8(0))
	f.Add(`<tool_call>[{"name":"f","arguments":{"a":"}\""},"}]</tool_call>"id":1},{"argume`, uint8(27))
	f.Fuzz(func(t *testing.T, answer string, cut uint8) {
		format := callFormats[0].format
		format.think = [2]string{"<think>", "</think>"}
		read := func(step int) (content, reasoning, calls string) {
			p := newAnswerParser(&format, ReaderOptions{Tools: true, Reasoning: true})
			take := func(d Delta) {
				content += d.Content
				reasoning += d.Reasoning
				for _, c := range d.Calls {
					calls += c.Name + c.Arguments // ids are random
				}
			}
			for i := 0; i < len(answer); i += step {
				take(p.push(answer[i:min(i+step, len(answer))], false))
			}
			take(p.push("", true))
			return content, reasoning, calls
		}
		c1, r1, n1 := read(len(answer) + 1)
		c2, r2, n2 := read(int(cut) + 1)
		if c1 != c2 || r1 != r2 || n1 != n2 {
			t.Fatalf("whole: %q, %q, calls %q; in pieces of %d: %q, %q, calls %q", c1, r1, n1, int(cut)+1, c2, r2, n2)
		}
	})
}
