package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// For templates without tool support, a text describes the tools. It uses the format of
// Hermes, which most models with tool support were trained on, and which Qwen's
// templates also use. See docs/serving.md.
const (
	toolsBefore = "You may call one or more functions to answer the user. The functions are, one a line:\n<tools>\n"
	toolsBehind = "</tools>\nTo call a function, write a JSON object with its name and its arguments like this:\n"
)

// call returns a call in the format of the template's model.
func (t *Template) call(name, arguments string) string {
	f := t.CallFormat()
	return fmt.Sprintf("%s{%q: %s, %q: %s}%s", f.Open, f.Name, name, f.Arguments, arguments, f.Shut)
}

// isGeneric reports whether a template does not mention tools.
func isGeneric(source string) bool { return !strings.Contains(source, "tools") }

// rendersSystem reports whether the template renders messages of the role system.
func (t *Template) rendersSystem() bool {
	const needle = "needle-7f3a"
	text, err := t.Render([]Message{{Role: "system", Content: needle}, {Role: "user", Content: "a"}}, RenderOptions{AddGenerationPrompt: true})
	return err == nil && strings.Contains(text, needle)
}

// DescribeTools writes tools, tool calls and their results as text if the template does
// not support tools; otherwise it returns its arguments unchanged. The description is
// added to the system message, or to the first user message if the template omits
// system messages.
func (t *Template) DescribeTools(messages []Message, opts RenderOptions) ([]Message, RenderOptions, error) {
	if !t.generic || t.tools != nil && len(opts.Tools) > 0 || len(opts.Tools) == 0 && !slices.ContainsFunc(messages, usesTools) {
		return messages, opts, nil
	}
	list := make([]Message, len(messages))
	for i := range messages {
		var err error
		if list[i], err = t.asText(messages[i]); err != nil {
			return nil, opts, messages[i].failed(err)
		}
	}
	if len(opts.Tools) == 0 {
		return list, opts, nil
	}
	text, err := t.describe(opts.Tools)
	if err != nil {
		return nil, opts, err
	}
	opts.Tools = nil
	switch {
	case t.system && list[0].Role == "system":
		list[0] = Message{Role: "system", Content: list[0].Text() + "\n\n" + text, Path: list[0].Path}
	case t.system:
		list = slices.Insert(list, 0, Message{Role: "system", Content: text, Path: "tools"})
	default:
		at := slices.IndexFunc(list, func(m Message) bool { return m.Role == "user" })
		if at < 0 {
			return nil, opts, errors.New("the chat template supports neither tools nor system messages, and there is no user message to add the tool description to")
		}
		list[at] = Message{Role: "user", Content: text + "\n\n" + list[at].Text(), Path: list[at].Path}
	}
	return list, opts, nil
}

// usesTools reports whether a message contains tool calls or a tool result.
func usesTools(m Message) bool { return len(m.ToolCalls) > 0 || m.Role == "tool" }

// asText writes calls and results into the content.
func (t *Template) asText(m Message) (Message, error) {
	switch {
	case m.Role == "tool":
		return Message{Role: "user", Content: "<tool_response>\n" + m.Text() + "\n</tool_response>", Path: m.Path}, nil
	case len(m.ToolCalls) == 0:
		return m, nil
	}
	parts := []string{m.Text()}
	if parts[0] == "" {
		parts = nil
	}
	for i := range m.ToolCalls {
		f := &m.ToolCalls[i].Function
		name, err := json.Marshal(f.Name)
		if err != nil {
			return m, err
		}
		arguments := bytes.TrimSpace(f.Arguments)
		var text string
		if len(arguments) > 0 && arguments[0] == '"' && json.Unmarshal(arguments, &text) == nil {
			arguments = []byte(text)
		}
		if len(arguments) == 0 {
			arguments = []byte("{}")
		}
		parts = append(parts, t.call(string(name), string(arguments)))
	}
	return Message{Role: m.Role, Content: strings.Join(parts, "\n"), Path: m.Path}, nil
}

// describe returns the description of the tools.
func (t *Template) describe(tools []json.RawMessage) (string, error) {
	var b bytes.Buffer
	b.WriteString(toolsBefore)
	for _, t := range tools {
		if err := json.Compact(&b, t); err != nil {
			return "", err
		}
		b.WriteByte('\n')
	}
	b.WriteString(toolsBehind + t.call("<the function's name>", "<an object>"))
	return b.String(), nil
}
