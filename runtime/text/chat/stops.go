package chat

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// Stops returns the tokens that end an answer: eos, the model's own tokens such as
// those in generation_config.json, the tokens of the format of its answers, and the special
// token that the template writes after an assistant message, unless an answer consists of
// several.
func (t *Template) Stops(tok *tokenizer.Tokenizer, eos []int32) []int32 {
	out := slices.Clone(eos)
	add := func(id int32, ok bool) {
		if ok && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	f := t.callFormat()
	if f == nil || !f.channels {
		add(t.endOfTurn(tok))
	}
	if f != nil {
		for _, token := range f.stops {
			add(tok.ID(token))
		}
	}
	return out
}

// endOfTurn returns the special token that follows an answer in a rendered
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
			return 0, false // text comes first: no token ends the turn
		}
		seen += stream.Push(id)
	}
	return 0, false
}

// endsWithWord reports whether text ends in word, ignoring spaces.
func endsWithWord(text, word string) bool {
	for len(text) > 0 && (text[len(text)-1] == ' ' || text[len(text)-1] == '\n') {
		text = text[:len(text)-1]
	}
	return len(text) >= len(word) && text[len(text)-len(word):] == word
}
