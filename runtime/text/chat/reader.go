package chat

import (
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A Delta is what one more token of an answer added.
type Delta struct {
	Content   string
	Reasoning string // thinking before the answer, where ReaderOptions.Reasoning asks for it apart
	Calls     []CallDelta
}

// A CallDelta is news of a call of a tool: the first one of an Index has ID
// and Name, the others more of its Arguments, whose pieces joined are a JSON
// object.
type CallDelta struct {
	Index     int
	ID        string
	Name      string
	Arguments string
}

// ReaderOptions say what a Reader looks for.
type ReaderOptions struct {
	Tools     bool // calls of tools; without it they stay part of the content
	Reasoning bool // thinking, where the template marks it
}

// A Reader turns the tokens of an answer into text and calls. Not safe for
// concurrent use.
type Reader struct {
	tok    *tokenizer.Tokenizer
	stream *tokenizer.Stream
	marks  []string // special tokens whose text the parser needs
	parser answerParser
}

// NewReader starts to read an answer to prompt, whose tokens it needs because
// the text of the first token may depend on the last one of the prompt, and
// because a prompt may already have opened the thinking.
func (t *Template) NewReader(tok *tokenizer.Tokenizer, prompt []int32, opts ReaderOptions) *Reader {
	r := &Reader{tok: tok, stream: tok.NewStream(false)}
	f := t.callFormat()
	if f == nil && opts.Tools {
		f = formatOf("") // a template in the brace language, to which tools were described
	}
	if f != nil {
		r.parser = newAnswerParser(f, opts)
		for _, m := range []string{f.open, f.close, f.think[0], f.think[1]} {
			if m != "" {
				r.marks = append(r.marks, m)
			}
		}
	}
	for _, id := range prompt {
		if !tok.IsSpecial(id) {
			r.stream.Push(id)
		}
	}
	if opts.Reasoning && r.parser.format != nil {
		tail := tok.Decode(prompt[max(0, len(prompt)-16):], false)
		r.parser.thinking = strings.HasSuffix(strings.TrimSpace(tail), r.parser.format.think[0])
	}
	return r
}

// callFormat is how the model calls tools.
func (t *Template) callFormat() *callFormat {
	if t.tools != nil && t.tools.format != nil {
		return t.tools.format
	}
	return t.format
}

// Push adds a token, which is not one of those that end the answer.
func (r *Reader) Push(id int32) Delta {
	if r.tok.IsSpecial(id) && !r.isMark(id) {
		return Delta{}
	}
	return r.parser.push(r.stream.Push(id), false)
}

func (r *Reader) isMark(id int32) bool {
	token := r.tok.Token(id)
	for _, m := range r.marks {
		if m == token {
			return true
		}
	}
	return false
}

// Flush ends the answer.
func (r *Reader) Flush() Delta { return r.parser.push(r.stream.Flush(), true) }
