package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/iflowc/iflowc/runtime/text/jinja"
)

// jinjaTemplate is a Jinja template and its probed capabilities.
type jinjaTemplate struct {
	tmpl    *jinja.Template
	tokens  SpecialTokens
	parts   bool // supports lists of parts as content
	text    bool // supports strings as content
	limits  jinja.Limits
	missing func() missingContent // probes once, when a message without content comes
}

func parseJinja(source string, tokens SpecialTokens, limits jinja.Limits) (*jinjaTemplate, error) {
	tmpl, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	t := &jinjaTemplate{tmpl: tmpl, tokens: tokens, parts: true, text: true, limits: limits}
	t.probe()
	t.missing = sync.OnceValue(t.probeMissing)
	return t, nil
}

// probe renders a message with a string and one with a list of parts, to determine
// which of them the template supports.
func (t *jinjaTemplate) probe() {
	const needle = "needle-7f3a"
	has := func(content any) bool {
		out, err := t.render([]Message{{Role: "user", Content: content}}, RenderOptions{AddGenerationPrompt: true}, renderAs{probe: true})
		text := out.String()
		return err == nil && strings.Contains(text, needle) && !strings.Contains(text, "'type'") && !strings.Contains(text, `"type"`)
	}
	text, parts := has(needle), has([]Part{TextPart(needle)})
	if text || parts {
		t.text, t.parts = text, parts
	}
}

// A missingContent is what a template gets as the content of a message with tool calls
// alone.
type missingContent int

const (
	contentLeftOut missingContent = iota // as transformers documents such messages
	contentNone
	contentEmpty
)

func (m missingContent) value() jinja.Value {
	if m == contentEmpty {
		return jinja.UserText("")
	}
	return nil
}

// probeMissing finds what a template writes the call for, and not the word None: some
// templates compare the content with None.
func (t *jinjaTemplate) probeMissing() missingContent {
	const name = "needle_7f3a"
	call := Message{Role: "assistant", ToolCalls: []ToolCall{{ID: "abcdefghi", Type: "function", Function: Function{Name: name}}}}
	tools := []Part{Part(`{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}`)}
	written := func(content any, missing missingContent) (calls, nones int, ok bool) {
		call.Content = content
		for _, argumentText := range []bool{false, true} {
			out, err := t.render([]Message{{Role: "user", Content: "a"}, call}, RenderOptions{Tools: tools}, renderAs{argumentText: argumentText, probe: true, missing: missing})
			if text := out.String(); err == nil {
				return strings.Count(text, name), strings.Count(text, "None"), true
			}
		}
		return 0, 0, false
	}
	all, usual, _ := written("a", contentLeftOut)
	for _, least := range []int{max(all, 1), 0} { // some templates write no calls
		for _, m := range []missingContent{contentLeftOut, contentNone, contentEmpty} {
			if calls, nones, ok := written(nil, m); ok && calls >= least && nones <= usual {
				return m
			}
		}
	}
	return contentLeftOut
}

// Render returns the prompt's text. It passes the arguments of calls as objects, as
// template authors expect, or as strings if the template concatenates them with text; and
// tools and arguments as they are or, if the template fails, in the form that it expects.
func (t *jinjaTemplate) Render(messages []Message, opts RenderOptions) (jinja.Str, error) {
	adapted := make([]Message, len(messages))
	calls, missing := false, contentLeftOut
	for i, m := range messages {
		adapted[i] = t.adapt(m)
		calls = calls || len(m.ToolCalls) > 0
		if adapted[i].Content == nil {
			missing = t.missing()
		}
	}
	out, err := t.render(adapted, opts, renderAs{missing: missing})
	if err == nil || stopped(err) {
		return out, err
	}
	complete, changed := opts, false
	complete.Tools, changed = completeTools(opts.Tools)
	for _, as := range []struct {
		renderAs
		opts    RenderOptions
		differs bool
	}{
		{renderAs{argumentText: true}, opts, calls},
		{renderAs{objects: true}, complete, changed || slices.ContainsFunc(messages, strayArguments)},
		{renderAs{argumentText: true}, complete, calls && changed},
	} {
		if !as.differs {
			continue
		}
		as.missing = missing
		if again, err := t.render(adapted, as.opts, as.renderAs); err == nil {
			return again, nil
		}
	}
	return out, err
}

// adapt converts a message's content to a form that the template supports.
func (t *jinjaTemplate) adapt(m Message) Message {
	switch c := m.Content.(type) {
	case string:
		if !t.text {
			m.Content = []Part{TextPart(c)}
		}
	case []Part:
		if !t.parts {
			m.Content = joinText(c)
		}
	}
	return m
}

// renderAs selects how messages are passed to a template.
type renderAs struct {
	argumentText bool // pass arguments of calls as text instead of objects
	objects      bool // pass arguments that are no object, such as those of a call that was cut off, in one
	missing      missingContent
	probe        bool // use probeLimits, unless the template has its own limits
}

// probeLimits bound the time that a hostile template takes when a model is opened.
var probeLimits = jinja.Limits{Steps: 1_000_000, Bytes: 1 << 20}

func (t *jinjaTemplate) render(messages []Message, opts RenderOptions, as renderAs) (jinja.Str, error) {
	vars := jinja.NewDict()
	t.tokens.set(vars)
	list := make([]jinja.Value, len(messages))
	for i := range messages {
		v, err := messages[i].value(as)
		if err != nil {
			return jinja.Str{}, messages[i].failed(err)
		}
		list[i] = v
	}
	vars.Set("messages", jinja.NewList(list...))
	for _, set := range []struct {
		name string
		list []Part
	}{{"tools", opts.Tools}, {"documents", opts.Documents}} {
		v, err := jsonList(set.list)
		if err != nil {
			return jinja.Str{}, fmt.Errorf("%s: %w", set.name, err)
		}
		vars.Set(set.name, v)
	}
	vars.Set("add_generation_prompt", opts.AddGenerationPrompt)
	for name, v := range opts.Variables {
		value, err := goValue(v)
		if err != nil {
			return jinja.Str{}, fmt.Errorf("variable %s: %w", name, err)
		}
		vars.Set(name, value)
	}
	limits := t.limits
	if as.probe && limits.Steps == 0 {
		limits = probeLimits
	}
	if opts.Limit.Tick != nil {
		limits.Tick = opts.Limit.Tick
	}
	out, err := t.tmpl.Render(vars, jinja.Options{Now: opts.Now, Limits: limits})
	switch {
	case stopped(err):
		return jinja.Str{}, err
	case err != nil:
		return jinja.Str{}, inLoop(fmt.Errorf("chat template: %w", err), messages, list)
	}
	return out, nil
}

// stopped reports whether an error is that of Limits.Tick.
func stopped(err error) bool {
	var e *jinja.Stopped
	return errors.As(err, &e)
}

// inLoop returns an error of a template with the path of the message that a loop of the
// template had reached. Values are those of the messages.
func inLoop(err error, messages []Message, values []jinja.Value) error {
	var e *jinja.Error
	if !errors.As(err, &e) {
		return err
	}
	for _, item := range e.Items {
		if i := slices.Index(values, item); i >= 0 {
			return messages[i].failed(err)
		}
	}
	return err
}

// continueTag marks the end of the message that the model continues.
const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

// tagFinal appends the tag to the last message's text and returns that text.
func tagFinal(messages []Message) ([]Message, string, error) {
	if len(messages) == 0 {
		return nil, "", errors.New("there is no message to continue")
	}
	out := append([]Message{}, messages...)
	last := &out[len(out)-1]
	switch c := last.Content.(type) {
	case string:
		last.Content = c + continueTag
		return out, c, nil
	case []Part:
		text := last.Text()
		last.Content = []Part{TextPart(text + continueTag)}
		return out, text, nil
	}
	return nil, "", last.failed(errors.New("the last message has no text to continue"))
}

// cutFinal truncates a prompt after the last message.
func cutFinal(out jinja.Str, final string) (jinja.Str, error) {
	text := out.String()
	tag := strings.TrimSpace(continueTag)
	at := strings.LastIndex(text, tag)
	if at < 0 || !strings.Contains(text, strings.TrimSpace(final)) {
		return out, errors.New("the last message cannot be continued: the template leaves it out or changes it")
	}
	if !strings.HasPrefix(text[at:], continueTag) { // the template trims the message
		at = len(strings.TrimRightFunc(text[:at], unicode.IsSpace))
	}
	return out.Cut(0, at), nil
}
