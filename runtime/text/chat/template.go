package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/text/jinja"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A Template makes prompts of conversations. It is immutable and safe for
// concurrent use.
type Template struct {
	source string
	tokens SpecialTokens
	jinja  *jinjaTemplate // nil: in the brace language
	braces *braceTemplate
	tools  *Template // for conversations with tools; nil: this one
	format *callFormat

	generic bool // it knows no tools, which are described as text
	system  bool // of a generic one: it knows the role system
}

// Parse reads a template in Jinja or in the brace language; which one it is
// shows in the text: only Jinja has {{ and {%. A text without braces is the
// name of a built-in template, see Names.
func Parse(source string, tokens SpecialTokens) (*Template, error) {
	return ParseBounded(source, tokens, jinja.Limits{})
}

// ParseBounded is Parse with limits of each render, for templates that come from
// whoever asks. Reading one and finding its stops renders it a few times.
func ParseBounded(source string, tokens SpecialTokens, limits jinja.Limits) (*Template, error) {
	if source == "" {
		return nil, errors.New("the chat template is empty")
	}
	if !strings.Contains(source, "{") {
		named, ok := builtin(source)
		if !ok {
			return nil, fmt.Errorf("no chat template is called %q; there are %s", source, strings.Join(Names(), ", "))
		}
		source = named
	}
	t := &Template{source: source, tokens: tokens}
	var err error
	if strings.Contains(source, "{%") || strings.Contains(source, "{{") {
		t.jinja, err = parseJinja(source, tokens, limits)
		t.format = formatOf(source)
	} else {
		t.braces, err = parseBraces(source)
	}
	if err != nil {
		return nil, err
	}
	if isGeneric(source) {
		t.generic, t.system = true, t.takesSystem()
	}
	return t, nil
}

// WithTools gives a template that renders conversations with tools by another
// one, as models with a template "tool_use" want it.
func (t *Template) WithTools(tools *Template) *Template {
	both := *t
	both.tools = tools
	return &both
}

// RenderOptions are what a template gets besides the messages.
type RenderOptions struct {
	Tools               []json.RawMessage // {"type": "function", "function": {…}}, as the template's author expects them
	Documents           []json.RawMessage
	AddGenerationPrompt bool            // end with what opens the model's answer
	ContinueFinal       bool            // end inside the last message, which the model continues
	Variables           map[string]any  // more variables of the template: Go values as of encoding/json, or json.RawMessage
	Limit               tokenizer.Limit // of the prompt
	Now                 time.Time       // for strftime_now; zero: the current time
}

// A Prompt is what the model gets.
type Prompt struct {
	Text string
	IDs  []int32
}

// Source is the template's text.
func (t *Template) Source() string { return t.source }

// Render gives the prompt's text.
func (t *Template) Render(messages []Message, opts RenderOptions) (string, error) {
	if t.braces != nil {
		return t.braces.text(messages, opts, t.tokens)
	}
	out, err := t.text(messages, opts)
	return out.String(), err
}

// text renders a template in Jinja.
func (t *Template) text(messages []Message, opts RenderOptions) (out jinja.Str, err error) {
	if t.tools != nil && len(opts.Tools) > 0 {
		return t.tools.text(messages, opts)
	}
	if opts.ContinueFinal && opts.AddGenerationPrompt {
		return out, errors.New("a prompt either continues the last message or opens an answer, not both")
	}
	if !opts.ContinueFinal {
		return t.jinja.Render(messages, opts)
	}
	tagged, final, err := tagFinal(messages)
	if err != nil {
		return out, err
	}
	if out, err = t.jinja.Render(tagged, opts); err != nil {
		return out, err
	}
	return cutFinal(out, final)
}

// Encode gives the prompt's text and tokens. Special tokens written in the
// template become tokens; the same letters in a message, a tool's description
// or a variable stay plain text, so that nobody can forge a turn. Without such
// letters the tokens are those of transformers.
func (t *Template) Encode(tok *tokenizer.Tokenizer, messages []Message, opts RenderOptions) (*Prompt, error) {
	if t.braces != nil {
		return t.braces.encode(tok, messages, opts, t.tokens)
	}
	out, err := t.text(messages, opts)
	if err != nil {
		return nil, err
	}
	user := out.User()
	refuse := func(start, end int) bool {
		i := sort.Search(len(user), func(i int) bool { return user[i].To > start })
		return i < len(user) && user[i].From < end
	}
	ids, err := tok.EncodeGuarded(out.String(), refuse, opts.Limit)
	if err != nil {
		return nil, err
	}
	return &Prompt{Text: out.String(), IDs: ids}, nil
}
