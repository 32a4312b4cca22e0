package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// MarksReasoning reports whether a Reader can find the reasoning of an answer.
func (t *Template) MarksReasoning() bool { return t.callFormat() != nil }

// Mentions reports whether a template reads a variable of this name.
func (t *Template) Mentions(variable string) bool {
	return strings.Contains(t.source, variable) || t.tools != nil && strings.Contains(t.tools.source, variable)
}

// A ReasoningEnd holds the tokens that end the reasoning of an answer.
type ReasoningEnd struct {
	answer []int32 // then the answer follows
	turn   []int32 // then a message of any kind follows, so that the model may call a tool; equal to answer unless answers consist of messages
}

// Close returns the tokens that end the reasoning. The answer then follows; with tools also
// a call may, unless the reasoning was ended before and the model has begun another one.
func (e *ReasoningEnd) Close(tools, again bool) []int32 {
	if tools && !again {
		return e.turn
	}
	return e.answer
}

// ReasoningEnd returns the tokens that end the reasoning: those that the template writes
// between the reasoning and the text of a message. A template that leaves reasoning out
// gets the closing marker on a line of its own.
func (t *Template) ReasoningEnd(tok *tokenizer.Tokenizer) ReasoningEnd {
	f := t.callFormat()
	if f == nil {
		return ReasoningEnd{}
	}
	text := t.betweenReasoning(f)
	end := ReasoningEnd{answer: encodeInner(tok, text)}
	end.turn = end.answer
	if turn, _, found := strings.Cut(text, messageStart+"assistant"); f.channels && found {
		end.turn = encodeInner(tok, turn+messageStart+"assistant")
	}
	return end
}

// betweenReasoning returns the text between reasoning and answer, or reasoning and call:
// some templates keep the reasoning only of messages with calls.
func (t *Template) betweenReasoning(f *callFormat) string {
	mark, usual := f.think[1], "\n"+f.think[1]+"\n\n"
	if f.channels {
		mark, usual = messageEnd, messageEnd+messageStart+"assistant<|channel|>final"+messageBody
	}
	if t.jinja == nil {
		return usual
	}
	const reasoning, answer = "needle", "haystack"
	value, _ := json.Marshal(reasoning) // cannot fail for a string
	user := Message{Role: "user", Content: "a"}
	reasons := Message{Role: "assistant", Content: answer, Extra: []Field{{Key: reasoningKeys[0], Value: value}}}
	calls := reasons
	calls.ToolCalls = []ToolCall{{ID: "functions.f:0", Type: "function", Function: Function{Name: "f", Arguments: json.RawMessage("{}")}}}
	for _, m := range []Message{reasons, calls} {
		text, err := t.Render([]Message{user, m}, RenderOptions{Variables: ReasoningVariables(true)})
		_, text, begun := strings.Cut(text, reasoning)
		if err != nil || !begun {
			continue
		}
		before, _, ended := strings.Cut(text, answer)
		if f.open != "" {
			before, _, _ = strings.Cut(before, f.open)
		}
		if ended && strings.Contains(before, mark) {
			return before
		}
	}
	return usual
}

// ReasoningVariables returns the variables by which templates turn reasoning on or off.
// Most read enable_thinking; those of DeepSeek and IBM read thinking.
func ReasoningVariables(on bool) map[string]any {
	return map[string]any{"enable_thinking": on, "thinking": on}
}

// encodeInner returns the tokens of a template's text that follows other text.
func encodeInner(tok *tokenizer.Tokenizer, text string) []int32 {
	const before = "needle"
	head, ids := tok.Encode(before, false), tok.Encode(before+text, false)
	if len(ids) >= len(head) && slices.Equal(ids[:len(head)], head) {
		return ids[len(head):]
	}
	return tok.Encode(text, false)
}
