package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A Message is one turn of a conversation, with the keys of the OpenAI
// interface. Decoded from JSON, it keeps every key and their order, because
// templates may look at any of them.
type Message struct {
	Role       string     // "system", "user", "assistant" or "tool"
	Content    any        // a string, an array of parts of type text ([]Part), or nil
	Name       string     // name of the participant
	ToolCalls  []ToolCall // calls that the assistant made
	ToolCallID string     // id of the call that the message answers
	Extra      []Field    // further keys, in order

	keys []string // as decoded; nil: made by hand
}

// A Part is one piece of a content that is a list: its JSON object, such as
// {"type": "text", "text": "…"}.
type Part = json.RawMessage

// TextPart is the part of a text.
func TextPart(text string) Part {
	quoted, _ := json.Marshal(text) // a string always can
	return Part(`{"type": "text", "text": ` + string(quoted) + `}`)
}

// A Field is a key with its value as JSON.
type Field struct {
	Key   string
	Value json.RawMessage
}

// A ToolCall is a call of a function that the model asked for.
type ToolCall struct {
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"` // "function"
	Function Function `json:"function"`
}

// A Function is the name and the arguments of a call. Arguments is a JSON
// object, or a JSON string that holds one, as the OpenAI interface has it:
// templates get the object either way.
type Function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// UnmarshalJSON reads a message.
func (m *Message) UnmarshalJSON(data []byte) error {
	fields, err := objectFields(data)
	if err != nil {
		return fmt.Errorf("message: %w", err)
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
			err = json.Unmarshal(f.Value, &m.ToolCalls)
		case "tool_call_id":
			err = json.Unmarshal(f.Value, &m.ToolCallID)
		default:
			m.Extra = append(m.Extra, f)
		}
		if err != nil {
			return fmt.Errorf("message: %q: %w", f.Key, err)
		}
	}
	return nil
}

// readContent reads null, a string or a list of parts.
func readContent(data json.RawMessage) (any, error) {
	switch data = bytes.TrimSpace(data); {
	case string(data) == "null":
		return nil, nil
	case len(data) > 0 && data[0] == '"':
		var s string
		err := json.Unmarshal(data, &s)
		return s, err
	case len(data) > 0 && data[0] == '[':
		var parts []Part
		err := json.Unmarshal(data, &parts)
		return parts, err
	}
	return nil, errors.New("expected a string, a list of parts or null")
}

// Text is the text of a message: its content, or the texts of its parts joined
// by line feeds.
func (m *Message) Text() string {
	switch c := m.Content.(type) {
	case string:
		return c
	case []Part:
		return joinText(c)
	}
	return ""
}

// joinText joins the texts of parts and leaves other kinds of parts out.
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

// objectFields reads a JSON object and keeps the order of its keys; of a key
// that occurs twice, the last value counts, at the first one's place.
func objectFields(data []byte) ([]Field, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	first, err := d.Token()
	if err != nil {
		return nil, err
	}
	if first != json.Delim('{') {
		return nil, fmt.Errorf("expected an object, found %.20s", data)
	}
	var fields []Field
	at := map[string]int{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		f := Field{Key: key.(string)} // the decoder gives only strings as keys
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
