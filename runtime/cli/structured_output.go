//go:build unix

package cli

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/grammar"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// constrain makes the masks of structured output. eos are the tokens that end a
// response; format is the syntax of the model's tool calls.
func constrain(vocab int, t *tokenizer.Tokenizer, eos []int32, format grammar.CallFormat) func(server.Constraint) (decode.Mask, error) {
	maker := grammar.NewMaker(vocab, t.Bytes, eos)
	calls := grammar.NewMaker(vocab, withMarks(t, format), eos)
	return func(c server.Constraint) (decode.Mask, error) {
		maker, calls := maker.In(c.Scope), calls.In(c.Scope)
		switch c.Kind {
		case "json_object":
			return maskOf(maker.Object())
		case "json_schema":
			return maskOf(maker.Schema(c.Schema))
		case "regex":
			return maskOf(maker.Regex(c.Text))
		case "grammar":
			return maskOf(maker.GBNF(c.Text))
		case "tool":
			tools := make([]grammar.Tool, len(c.Tools))
			for i, t := range c.Tools {
				tools[i] = grammar.Tool{Name: t.Name, Parameters: t.Parameters, Strict: t.Strict}
			}
			return maskOf(calls.Call(format, tools, c.Schema))
		}
		return nil, fmt.Errorf("unknown constraint kind %q", c.Kind)
	}
}

// withMarks returns the bytes of tokens, including special tokens that mark a
// call: a model that learned to write "<|python_tag|>" as one token must not
// spell it out.
func withMarks(t *tokenizer.Tokenizer, format grammar.CallFormat) func(id int32) []byte {
	return func(id int32) []byte {
		if b := t.Bytes(id); len(b) > 0 || !t.IsSpecial(id) {
			return b
		}
		if name := t.Token(id); format.Marked(name) {
			return []byte(name)
		}
		return nil
	}
}

// maskOf converts a matcher to a mask, and a nil matcher to a nil mask.
func maskOf(m *grammar.Matcher, err error) (decode.Mask, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}
