package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// completeTools returns tools with a description and parameters of type object, which
// clients may leave out and some templates read unasked, and whether that changed them.
func completeTools(list []Part) (out []Part, changed bool) {
	const none = "{}"
	out = slices.Clone(list)
	for i, data := range list {
		out[i] = editKey(data, "function", none, func(function json.RawMessage) json.RawMessage {
			function = editKey(function, "description", `""`, nil)
			return editKey(function, "parameters", none, func(parameters json.RawMessage) json.RawMessage {
				if !strings.HasPrefix(string(parameters), "{") {
					parameters = json.RawMessage(none)
				}
				return editKey(editKey(parameters, "type", `"object"`, nil), "properties", none, nil)
			})
		})
		changed = changed || !bytes.Equal(out[i], data)
	}
	return out, changed
}

// editKey returns a JSON object with the value of a key edited; edit may be nil. If the key
// is missing or null, it gets a value first.
func editKey(data json.RawMessage, key, missing string, edit func(json.RawMessage) json.RawMessage) json.RawMessage {
	fields, err := objectFields(data)
	if err != nil {
		return data
	}
	at := slices.IndexFunc(fields, func(f Field) bool { return f.Key == key })
	if at < 0 {
		at, fields = len(fields), append(fields, Field{Key: key})
	}
	before := fields[at].Value
	value := before
	if len(value) == 0 || string(value) == "null" {
		value = json.RawMessage(missing)
	}
	if edit != nil {
		value = edit(value)
	}
	if bytes.Equal(before, value) {
		return data
	}
	fields[at].Value = value
	return joinFields(fields)
}

// joinFields returns a JSON object with fields.
func joinFields(fields []Field) json.RawMessage {
	parts := make([][]byte, len(fields))
	for i, f := range fields {
		parts[i] = append([]byte(jsonString(f.Key)+": "), f.Value...)
	}
	return slices.Concat([]byte("{"), bytes.Join(parts, []byte(", ")), []byte("}"))
}
