package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A Delta is the part of an answer that one more token added.
type Delta struct {
	Content   string
	Reasoning string // reasoning before the answer; only with ReaderOptions.Reasoning
	Calls     []CallDelta
}

// A CallDelta is a part of a tool call. The first delta of an Index contains ID and
// Name, the others pieces of Arguments, which joined are a JSON object.
type CallDelta struct {
	Index     int
	ID        string
	Name      string
	Arguments string
}

// ReaderOptions select what a Reader parses.
type ReaderOptions struct {
	Tools     bool              // parse tool calls; otherwise they stay in the content
	Forced    bool              // the answer is a call and nothing else, even if it is cut off
	Schemas   []json.RawMessage // the tools, as in RenderOptions: they say which arguments are not text
	Reasoning bool              // parse reasoning, if the template marks it
}

// A Reader parses the tokens of an answer into text and tool calls. It is not safe for
// concurrent use.
type Reader struct {
	tok    *tokenizer.Tokenizer
	stream *tokenizer.Stream
	marks  []string // special tokens that the parser needs as text
	parser answerParser
}

// NewReader returns a Reader for the answer to a prompt. It needs the prompt's tokens
// because the text of the first token may depend on the token before it, and because
// the prompt may already have started the reasoning.
func (t *Template) NewReader(tok *tokenizer.Tokenizer, prompt []int32, opts ReaderOptions) *Reader {
	r := &Reader{tok: tok, stream: tok.NewStream(false)}
	f := t.callFormat()
	if f == nil && opts.Tools {
		f = formatOf("") // a template in the brace language, with described tools
	}
	if f != nil {
		r.parser = newAnswerParser(f, opts)
		r.marks = f.marks()
	}
	for _, id := range prompt {
		if !tok.IsSpecial(id) {
			r.stream.Push(id)
		}
	}
	if opts.Reasoning && r.parser.format != nil {
		tail := tok.Decode(prompt[max(0, len(prompt)-16):], false)
		r.parser.thinking = strings.HasSuffix(strings.TrimSpace(tail), r.parser.format.think[0])
		r.parser.trim = r.parser.thinking
	}
	return r
}

// callFormat returns the tool call format of the model.
func (t *Template) callFormat() *callFormat {
	if t.tools != nil && t.tools.format != nil {
		return t.tools.format
	}
	return t.format
}

// CallsWhileReasoning reports whether the model may call tools inside its reasoning.
func (t *Template) CallsWhileReasoning() bool {
	f := t.callFormat()
	return f != nil && f.unended
}

// Push parses one token of the answer. Do not pass tokens that end the answer.
func (r *Reader) Push(id int32) Delta {
	if r.tok.IsSpecial(id) && !r.isMark(id) {
		return Delta{}
	}
	return r.parser.push(r.stream.Push(id), false)
}

func (r *Reader) isMark(id int32) bool {
	token := r.tok.Token(id)
	return slices.ContainsFunc(r.marks, func(mark string) bool { return strings.Contains(mark, token) })
}

// Reasoning reports whether the text so far ends inside the reasoning.
func (r *Reader) Reasoning() bool { return r.parser.thinking || r.parser.message == inReasoning }

// Follow parses one more token and drops its text. It reports whether the text so far ends
// inside the reasoning, and whether it may still contain, or begin, reasoning.
func (r *Reader) Follow(id int32) (inside, more bool) {
	r.Push(id)
	f := r.parser.format
	return r.Reasoning(), f != nil && (r.Reasoning() || !r.parser.started || f.channels)
}

// Flush marks the end of the answer and returns the rest.
func (r *Reader) Flush() Delta { return r.parser.push(r.stream.Flush(), true) }
