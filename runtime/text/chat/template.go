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

// A Template renders conversations to prompts. It is immutable and safe for concurrent
// use.
type Template struct {
	source string
	tokens SpecialTokens
	jinja  *jinjaTemplate // nil: a template in the brace language
	braces *braceTemplate
	tools  *Template // for conversations with tools; nil: this template
	format *callFormat

	generic bool // the template does not support tools; they are described as text
	system  bool // the template renders messages of the role system
}

// Parse parses a template in Jinja or in the brace language. It recognizes Jinja by {{
// or {%. A source without braces is the name of a built-in template; see Names.
func Parse(source string, tokens SpecialTokens) (*Template, error) {
	return ParseBounded(source, tokens, jinja.Limits{})
}

// ParseBounded is like Parse, with limits for each render. Use it for templates from
// untrusted clients. Parse, Stops and Encode render a template a few times; those for which
// limits.Tick returned an error count as renders that failed, and only Encode returns it.
func ParseBounded(source string, tokens SpecialTokens, limits jinja.Limits) (*Template, error) {
	if source == "" {
		return nil, errors.New("the chat template is empty")
	}
	if !strings.Contains(source, "{") {
		named, ok := builtin(source)
		if !ok {
			return nil, fmt.Errorf("no chat template is named %q; choose one of: %s", source, strings.Join(Names(), ", "))
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
	t.system = t.rendersSystem()
	if isGeneric(source) {
		t.generic = true
		if t.format != nil && !t.format.json() { // the description of tools needs JSON
			t.format = formatOf("")
		}
	}
	return t, nil
}

// WithTools returns a template that renders conversations with tools by another
// template, as for models that have a template "tool_use".
func (t *Template) WithTools(tools *Template) *Template {
	both := *t
	both.tools = tools
	return &both
}

// RenderOptions are the inputs of a template besides the messages.
type RenderOptions struct {
	Tools               []json.RawMessage // {"type": "function", "function": {…}}
	Documents           []json.RawMessage
	AddGenerationPrompt bool            // end with the start of the model's answer
	ContinueFinal       bool            // end inside the last message, for the model to continue
	Variables           map[string]any  // additional template variables: values as decoded by encoding/json, or json.RawMessage
	Limit               tokenizer.Limit // limit for the prompt; its Tick is also called while the template renders
	Now                 time.Time       // for strftime_now; zero: the current time
}

// A Prompt is the input of the model.
type Prompt struct {
	Text string
	IDs  []int32
}

// Source returns the template's text.
func (t *Template) Source() string { return t.source }

// Render returns the prompt's text.
func (t *Template) Render(messages []Message, opts RenderOptions) (string, error) {
	if t.braces != nil {
		return t.braces.text(messages, opts, t.tokens)
	}
	out, err := t.text(messages, opts)
	return out.String(), err
}

// text renders a Jinja template.
func (t *Template) text(messages []Message, opts RenderOptions) (out jinja.Str, err error) {
	if t.tools != nil && len(opts.Tools) > 0 {
		return t.tools.text(messages, opts)
	}
	if opts.ContinueFinal && opts.AddGenerationPrompt {
		return out, errors.New("continuing the last message and adding a generation prompt exclude each other")
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
	if out, err = cutFinal(out, final); err != nil {
		err = tagged[len(tagged)-1].failed(err)
	}
	return out, err
}

// Encode returns the prompt's text and tokens. Special tokens in the template's text
// become tokens. The same characters in a message, a tool description or a variable
// stay plain text, so users cannot forge a turn. Otherwise the tokens are equal to
// those of transformers.
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
