package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/jinja"
)

// set sets the template variables of the defined special tokens.
func (t SpecialTokens) set(vars *jinja.Dict) {
	for _, v := range []struct{ name, token string }{
		{"bos_token", t.BOS}, {"eos_token", t.EOS}, {"unk_token", t.UNK}, {"sep_token", t.SEP},
		{"pad_token", t.PAD}, {"cls_token", t.CLS}, {"mask_token", t.Mask},
	} {
		if v.token != "" {
			vars.Set(v.name, jinja.Text(v.token))
		}
	}
}

// knownRoles are trusted text, because some templates build a special token from them
// ("<|" + role + "|>").
var knownRoles = []string{
	"system", "developer", "user", "assistant", "tool", "function", "ipython", "model", "observation", "environment",
	"tool_response", "tool_call", "context", "document", "documents", "control",
}

// value converts a message for a template. Keys that are null are left out, and so are empty
// lists: templates ask whether tool_calls is defined.
func (m *Message) value(as renderAs) (jinja.Value, error) {
	d := jinja.NewDict()
	keys := m.keys
	switch {
	case keys == nil:
		keys = m.defaultKeys()
	case m.Content != nil && !slices.Contains(keys, "content"): // it was added
		keys = append(keys[:len(keys):len(keys)], "content")
	}
	for _, key := range keys {
		v, err := m.field(key, as)
		if err != nil {
			return nil, err
		}
		if v != nil {
			d.Set(key, v)
		}
	}
	if m.Content == nil && as.missing != contentLeftOut {
		d.Set("content", as.missing.value())
	}
	return nameReasoning(d, keys), nil
}

// reasoningKeys are the keys under which clients send the reasoning of a message, the
// usual one first.
var reasoningKeys = []string{"reasoning_content", "thinking", "reasoning"}

// nameReasoning gives a message its reasoning under both keys that templates read. As
// in transformers, "thinking" comes first unless the message has it.
func nameReasoning(d *jinja.Dict, keys []string) *jinja.Dict {
	for _, name := range reasoningKeys {
		reasoning, _ := d.Get(name)
		if reasoning == nil {
			continue
		}
		named := jinja.NewDict()
		named.Set("thinking", reasoning)
		for _, key := range keys {
			if v, ok := d.Get(key); ok {
				named.Set(key, v)
			}
		}
		named.Set(reasoningKeys[0], reasoning)
		return named
	}
	return d
}

// defaultKeys returns the keys of a message that was not decoded from JSON.
func (m *Message) defaultKeys() []string {
	keys := []string{"role", "content"}
	if m.Name != "" {
		keys = append(keys, "name")
	}
	if len(m.ToolCalls) > 0 {
		keys = append(keys, "tool_calls")
	}
	if m.ToolCallID != "" {
		keys = append(keys, "tool_call_id")
	}
	for _, f := range m.Extra {
		keys = append(keys, f.Key)
	}
	return keys
}

func (m *Message) field(key string, as renderAs) (jinja.Value, error) {
	switch key {
	case "role":
		if slices.Contains(knownRoles, m.Role) {
			return jinja.Text(m.Role), nil
		}
		return jinja.UserText(m.Role), nil
	case "content":
		switch c := m.Content.(type) {
		case string:
			return jinja.UserText(c), nil
		case []Part:
			return jsonList(c)
		}
		return nil, nil
	case "name", "tool_call_id":
		text := m.Name
		if key == "tool_call_id" {
			text = m.ToolCallID
		}
		if text == "" {
			return nil, nil // null
		}
		return jinja.UserText(text), nil
	case "tool_calls":
		if len(m.ToolCalls) == 0 {
			return nil, nil
		}
		list := make([]jinja.Value, len(m.ToolCalls))
		for i := range m.ToolCalls {
			v, err := m.ToolCalls[i].value(as)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return jinja.NewList(list...), nil
	}
	for _, f := range m.Extra {
		if f.Key == key && string(f.Value) != "[]" {
			return jinja.FromJSON(f.Value)
		}
	}
	return nil, nil
}

// value converts a tool call for a template.
func (c *ToolCall) value(as renderAs) (jinja.Value, error) {
	f := jinja.NewDict()
	f.Set("name", jinja.UserText(c.Function.Name))
	arguments, err := c.Function.arguments(as)
	if err != nil {
		return nil, err
	}
	f.Set("arguments", arguments)
	d := jinja.NewDict()
	if c.ID != "" {
		d.Set("id", jinja.UserText(c.ID))
	}
	if c.Type != "" {
		d.Set("type", jinja.UserText(c.Type))
	}
	d.Set("function", f)
	return d, nil
}

// arguments returns the arguments of a call as an object, or as text.
func (f *Function) arguments(as renderAs) (jinja.Value, error) {
	text, err := f.argumentText()
	if err != nil {
		return nil, err
	}
	if as.argumentText {
		return jinja.UserText(text), nil
	}
	if v, err := jinja.FromJSON([]byte(text)); err == nil {
		if _, object := v.(*jinja.Dict); object {
			return v, nil
		}
	}
	if !as.objects {
		return jinja.UserText(text), nil
	}
	d := jinja.NewDict()
	d.Set("arguments", jinja.UserText(text))
	return d, nil
}

// argumentText returns the arguments of a call as text; none are {}.
func (f *Function) argumentText() (string, error) {
	text := string(f.Arguments)
	if strings.HasPrefix(strings.TrimSpace(text), `"`) {
		if err := json.Unmarshal(f.Arguments, &text); err != nil {
			return "", err
		}
	}
	if s := strings.TrimSpace(text); s == "" || s == "null" {
		return "{}", nil
	}
	return text, nil
}

// strayArguments reports whether a message has a call whose arguments are no object.
func strayArguments(m Message) bool {
	return slices.ContainsFunc(m.ToolCalls, func(c ToolCall) bool {
		text, _ := c.Function.argumentText()
		return !strings.HasPrefix(strings.TrimSpace(text), "{") || !json.Valid([]byte(text))
	})
}

// jsonList decodes a list of JSON values; an empty list becomes None.
func jsonList(list []Part) (jinja.Value, error) {
	if list == nil {
		return nil, nil
	}
	out := make([]jinja.Value, len(list))
	for i, data := range list {
		v, err := jinja.FromJSON(data)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return jinja.NewList(out...), nil
}

// goValue converts a variable to a template value.
func goValue(v any) (jinja.Value, error) {
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		return jinja.UserText(v), nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jinja.FromJSON(data)
}
