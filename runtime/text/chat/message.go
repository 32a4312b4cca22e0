package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// A Message is one message of a conversation, with the keys of the OpenAI API. A
// Message decoded from JSON keeps all keys in their order, because templates may use
// any of them.
type Message struct {
	Role       string     // "system", "user", "assistant" or "tool"
	Content    any        // a string, an array of text parts ([]Part), or nil
	Name       string     // name of the participant
	ToolCalls  []ToolCall // tool calls of the assistant
	ToolCallID string     // id of the call that a tool message answers
	Extra      []Field    // other keys, in order
	Path       string     `json:"-"` // where the request has the message, such as "messages[2]"; errors begin with it

	keys []string // order of the keys in JSON; nil: not decoded from JSON
}

// failed returns an error of the message with its path.
func (m *Message) failed(err error) error {
	if m.Path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", m.Path, err)
}

// A Part is one element of a list content: its JSON object, such as {"type": "text",
// "text": "…"}.
type Part = json.RawMessage

// TextPart returns a text part.
func TextPart(text string) Part {
	quoted, _ := json.Marshal(text) // cannot fail for a string
	return Part(`{"type": "text", "text": ` + string(quoted) + `}`)
}

// A Field is a key with its value as JSON.
type Field struct {
	Key   string
	Value json.RawMessage
}

// A ToolCall is a function call that the model requested.
type ToolCall struct {
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"` // "function"
	Function Function `json:"function"`
}

// A Function is the name and the arguments of a call. Arguments is a JSON object or, as
// in the OpenAI API, a JSON string that contains one; templates get the object in both
// cases.
type Function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// UnmarshalJSON decodes a message and keeps the order of its keys. As in encoding/json,
// an error for a value of the wrong type has the path to it.
func (m *Message) UnmarshalJSON(data []byte) error {
	fields, err := objectFields(data)
	if err != nil {
		return err
	}
	*m = Message{keys: make([]string, 0, len(fields))}
	for _, f := range fields {
		m.keys = append(m.keys, f.Key)
		switch f.Key {
		case "role":
			err = json.Unmarshal(f.Value, &m.Role)
		case "content":
			m.Content, err = readContent(f.Value)
		case "name":
			err = json.Unmarshal(f.Value, &m.Name)
		case "tool_calls":
			m.ToolCalls, err = decodeCalls(f.Value)
		case "tool_call_id":
			err = json.Unmarshal(f.Value, &m.ToolCallID)
		default:
			m.Extra = append(m.Extra, f)
		}
		if err != nil {
			return under(f.Key, err)
		}
	}
	return nil
}

// under returns an error of json.Unmarshal with the path of the value that was decoded.
func under(path string, err error) error {
	if kind, ok := err.(*json.UnmarshalTypeError); ok {
		if kind.Field != "" && kind.Field[0] != '[' {
			path += "."
		}
		kind.Field = path + kind.Field
	}
	return err
}

// decodeCalls decodes tool calls.
func decodeCalls(data json.RawMessage) (calls []ToolCall, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	for i, data := range list {
		var c ToolCall
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, under(fmt.Sprintf("[%d]", i), err)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// readContent decodes null, a string or a list of parts.
func readContent(data json.RawMessage) (any, error) {
	switch data = bytes.TrimSpace(data); {
	case string(data) == "null":
		return nil, nil
	case len(data) > 0 && data[0] == '[':
		var parts []Part
		err := json.Unmarshal(data, &parts)
		return parts, err
	}
	var s string
	err := json.Unmarshal(data, &s)
	return s, err
}

// Text returns the text of a message: its content, or the texts of its parts joined by
// line feeds.
func (m *Message) Text() string {
	switch c := m.Content.(type) {
	case string:
		return c
	case []Part:
		return joinText(c)
	}
	return ""
}

// joinText joins the texts of parts and omits other kinds of parts.
func joinText(parts []Part) string {
	var out []byte
	for i, p := range parts {
		var text struct{ Text string }
		if json.Unmarshal(p, &text) != nil {
			var s string
			if json.Unmarshal(p, &s) != nil {
				continue
			}
			text.Text = s
		}
		if i > 0 && len(out) > 0 {
			out = append(out, '\n')
		}
		out = append(out, text.Text...)
	}
	return string(out)
}

// WithoutNulls returns a JSON object without the keys that are null, and those of its key
// inside; other values stay as they are.
func WithoutNulls(data json.RawMessage, inside string) json.RawMessage {
	fields, err := objectFields(data)
	if err != nil || !bytes.Contains(data, []byte("null")) {
		return data
	}
	fields = slices.DeleteFunc(fields, func(f Field) bool { return string(f.Value) == "null" })
	for i := range fields {
		if fields[i].Key == inside {
			fields[i].Value = WithoutNulls(fields[i].Value, "")
		}
	}
	return joinFields(fields)
}

// objectFields decodes a JSON object and keeps the order of its keys. For a repeated
// key, the last value replaces the first one in place.
func objectFields(data []byte) ([]Field, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	first, err := d.Token()
	if err != nil {
		return nil, err
	}
	if first != json.Delim('{') {
		return nil, json.Unmarshal(data, new(struct{}))
	}
	var fields []Field
	at := map[string]int{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		f := Field{Key: key.(string)} // the decoder returns only strings as keys
		if err := d.Decode(&f.Value); err != nil {
			return nil, err
		}
		if i, ok := at[f.Key]; ok {
			fields[i] = f
			continue
		}
		at[f.Key] = len(fields)
		fields = append(fields, f)
	}
	_, err = d.Token()
	return fields, err
}
