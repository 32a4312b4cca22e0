package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// braceTemplate is a template in the brace language: text with keys in braces.
//
//	{query} {question}      the user's text; {_query} {_question}: after a space
//	{system_prompt}         the system prompt
//	{res_prefix} {answer}   the start of the answer, or an earlier turn's answer
//	{bos} {eos} {user_token} {assistant_token}
//	{\n} { }                a line feed, a space
//	{#12}                   a token by its id
//	{<|im_start|>}          a token by its text
//
// Text outside of braces is prompt text; \n in it is a line feed.
type braceTemplate struct{ parts []bracePart }

// A bracePart is a literal text, a key or a token id.
type bracePart struct {
	text string
	key  string
	id   int32 // -1: no id
}

func parseBraces(source string) (*braceTemplate, error) {
	t := &braceTemplate{}
	for rest := source; rest != ""; {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			open = len(rest)
		}
		if open > 0 {
			t.parts = append(t.parts, bracePart{text: strings.ReplaceAll(rest[:open], `\n`, "\n"), id: -1})
			rest = rest[open:]
			continue
		}
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return nil, fmt.Errorf("prompt template: missing } after %.40q", rest)
		}
		part, err := readKey(rest[1:end])
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, part)
		rest = rest[end+1:]
	}
	return t, nil
}

func readKey(key string) (bracePart, error) {
	switch {
	case key == `\n`:
		return bracePart{text: "\n", id: -1}, nil
	case key != "" && strings.Trim(key, " ") == "":
		return bracePart{text: key, id: -1}, nil
	case key == "":
		return bracePart{}, fmt.Errorf("prompt template: {} is empty; expected a key, #ID or a token")
	case key[0] == '#':
		id, err := strconv.ParseInt(key[1:], 10, 32)
		if err != nil || id < 0 {
			return bracePart{}, fmt.Errorf("prompt template: {%s}: expected a token id after #", key)
		}
		return bracePart{id: int32(id)}, nil
	}
	return bracePart{key: key, id: -1}, nil
}

// A braceTurn holds the values for one expansion of the template.
type braceTurn struct{ system, query, answer string }

// turns groups messages into turns; the last one has no answer yet.
func turns(messages []Message, opts RenderOptions) ([]braceTurn, error) {
	list := []braceTurn{{}}
	for i := range messages {
		m := &messages[i]
		last := &list[len(list)-1]
		switch m.Role {
		case "system", "developer":
			last.system = join(last.system, m.Text())
		case "user":
			last.query = join(last.query, m.Text())
		case "assistant":
			last.answer = m.Text()
			if i < len(messages)-1 || !opts.ContinueFinal {
				list = append(list, braceTurn{})
			}
		default:
			return nil, m.failed(fmt.Errorf("role %.40q is not supported by templates in the brace language; use system, user or assistant", m.Role))
		}
	}
	if last := list[len(list)-1]; len(list) > 1 && last == (braceTurn{}) {
		list = list[:len(list)-1]
	}
	return list, nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// A bracePiece is text with its origin, or a token id.
type bracePiece struct {
	text string
	user bool
	id   int32 // -1: text
}

// pieces expands the template for all turns. If the template has no key for the answer,
// the answer follows the expansion. Earlier turns end with the end-of-sequence token.
func (t *braceTemplate) pieces(messages []Message, opts RenderOptions, tokens SpecialTokens) ([]bracePiece, error) {
	list, err := turns(messages, opts)
	if err != nil {
		return nil, err
	}
	var out []bracePiece
	text := func(s string, user bool) { out = append(out, bracePiece{s, user, -1}) }
	for i, turn := range list {
		answered := false
		for _, p := range t.parts {
			switch {
			case p.id >= 0:
				out = append(out, bracePiece{id: p.id})
			case p.key == "":
				text(p.text, false)
			case slices.Contains([]string{"query", "question"}, p.key):
				text(turn.query, true)
			case slices.Contains([]string{"_query", "_question"}, p.key):
				text(" "+strings.TrimLeft(turn.query, " "), true)
			case p.key == "system_prompt":
				text(turn.system, true)
			case p.key == "res_prefix" || p.key == "answer":
				text(turn.answer, true)
				answered = true
			default:
				text(roleToken(p.key, tokens), false)
			}
		}
		if !answered {
			text(turn.answer, true)
		}
		if i < len(list)-1 {
			text(tokens.EOS, false)
		}
	}
	return out, nil
}

// roleToken returns the text of a token given by its role in the brace language, or key
// itself.
func roleToken(key string, t SpecialTokens) string {
	switch key {
	case "bos":
		return t.BOS
	case "eos":
		return t.EOS
	case "user_token":
		return t.User
	case "assistant_token":
		return t.Assistant
	}
	return key
}

// text returns the prompt's text; tokens given by id appear as {#id}.
func (t *braceTemplate) text(messages []Message, opts RenderOptions, tokens SpecialTokens) (string, error) {
	pieces, err := t.pieces(messages, opts, tokens)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.id >= 0 {
			fmt.Fprintf(&b, "{#%d}", p.id)
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String(), nil
}

// encode returns the prompt's tokens. Text between token ids is tokenized as one piece;
// special tokens are recognized only in text of the template, not of users.
func (t *braceTemplate) encode(tok *tokenizer.Tokenizer, messages []Message, opts RenderOptions, tokens SpecialTokens) (*Prompt, error) {
	pieces, err := t.pieces(messages, opts, tokens)
	if err != nil {
		return nil, err
	}
	prompt := &Prompt{}
	if prompt.Text, err = t.text(messages, opts, tokens); err != nil {
		return nil, err
	}
	if err := t.known(tok); err != nil {
		return nil, err
	}
	var text strings.Builder
	var user [][2]int
	flush := func() error {
		if text.Len() > 0 {
			ids, err := tok.EncodeGuarded(text.String(), func(start, end int) bool {
				return slices.ContainsFunc(user, func(u [2]int) bool { return u[0] < end && u[1] > start })
			}, opts.Limit)
			if err != nil {
				return err
			}
			prompt.IDs = append(prompt.IDs, ids...)
		}
		text.Reset()
		user = nil
		return nil
	}
	for _, p := range pieces {
		if p.id >= 0 {
			if err := flush(); err != nil {
				return nil, err
			}
			prompt.IDs = append(prompt.IDs, p.id)
			continue
		}
		at := text.Len()
		text.WriteString(strings.ToValidUTF8(p.text, "\uFFFD"))
		if p.user {
			user = append(user, [2]int{at, text.Len()})
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return prompt, nil
}

// known checks that all ids and texts of tokens are in the vocabulary.
func (t *braceTemplate) known(tok *tokenizer.Tokenizer) error {
	roles := []string{"query", "question", "_query", "_question", "system_prompt", "res_prefix", "answer", "bos", "eos", "user_token", "assistant_token"}
	for _, p := range t.parts {
		if p.id >= 0 && tok.Token(p.id) == "" {
			return fmt.Errorf("prompt template: {#%d}: no such token in the vocabulary", p.id)
		}
		if p.key == "" || slices.Contains(roles, p.key) {
			continue
		}
		if _, ok := tok.ID(p.key); !ok {
			return fmt.Errorf("prompt template: {%s} is neither a key (%s) nor a token of the model", p.key, strings.Join(roles, ", "))
		}
	}
	return nil
}
