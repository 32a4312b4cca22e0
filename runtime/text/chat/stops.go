package chat

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// Stops are the tokens that end an answer: those given (the model's own, such
// as generation_config.json lists) and the special token that the template
// writes behind an assistant's message.
func (t *Template) Stops(tok *tokenizer.Tokenizer, eos []int32) []int32 {
	out := slices.Clone(eos)
	if id, ok := t.endOfTurn(tok); ok && !slices.Contains(out, id) {
		out = append(out, id)
	}
	return out
}

// endOfTurn finds the special token that follows an answer in a rendered
// conversation.
func (t *Template) endOfTurn(tok *tokenizer.Tokenizer) (int32, bool) {
	if t.jinja == nil {
		return 0, false
	}
	const answer = "needle"
	p, err := t.Encode(tok, []Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: answer}, {Role: "user", Content: "b"}}, RenderOptions{})
	if err != nil {
		return 0, false
	}
	seen := ""
	stream := tok.NewStream(true)
	found := false
	for _, id := range p.IDs {
		if found = found || endsWithWord(seen, answer); found && tok.IsSpecial(id) {
			return id, true
		} else if found && len(seen) > 0 && !endsWithWord(seen, answer) {
			return 0, false // text follows first: the turn does not end by a token
		}
		seen += stream.Push(id)
	}
	return 0, false
}

// endsWithWord says whether text ends in word, blanks aside.
func endsWithWord(text, word string) bool {
	for len(text) > 0 && (text[len(text)-1] == ' ' || text[len(text)-1] == '\n') {
		text = text[:len(text)-1]
	}
	return len(text) >= len(word) && text[len(text)-len(word):] == word
}
