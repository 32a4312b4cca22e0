package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/kit/orderedjson"
)

// An object is a JSON object that keeps the order of its keys. Properties are generated
// in the order of the schema.
type object struct {
	keys   []string
	values map[string]any
}

func (o *object) get(key string) (any, bool) {
	v, ok := o.values[key]
	return v, ok
}

func (o *object) has(keys ...string) bool {
	for _, k := range keys {
		if _, ok := o.values[k]; ok {
			return true
		}
	}
	return false
}

// set adds or changes a value; a new key is appended.
func (o *object) set(key string, v any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = v
}

func newObject() *object { return &object{values: map[string]any{}} }

// readJSON decodes one value: *object, []any, string, json.Number, bool or nil.
func readJSON(data []byte) (any, error) {
	if len(data) > maxSource {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, len(data), maxSource)
	}
	if !utf8.Valid(data) || loneSurrogate(data) {
		return nil, errors.New("the JSON is not valid Unicode: it contains invalid UTF-8 or an unpaired surrogate")
	}
	v, err := orderedjson.Read(data, maxDepth, values)
	if errors.Is(err, orderedjson.ErrDeep) {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return v, err
}

var values = orderedjson.Maker[any]{
	Object: func(keys []string, values []any) any {
		o := newObject()
		for i, k := range keys {
			o.set(k, values[i])
		}
		return o
	},
	List:  func(items []any) any { return items },
	Other: func(v any) any { return v },
}

// loneSurrogate reports whether JSON contains an unpaired escape \uD800 to \uDFFF. Go
// decodes it as U+FFFD, other decoders keep it.
func loneSurrogate(data []byte) bool {
	code := func(i int) uint64 { // the code unit of the escape at i, else 0
		if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
			return 0
		}
		c, _ := strconv.ParseUint(string(data[i+2:i+6]), 16, 16)
		return c
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		switch c := code(i); {
		case c >= 0xD800 && c <= 0xDBFF:
			if low := code(i + 6); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 11
		case c >= 0xDC00 && c <= 0xDFFF:
			return true
		default:
			i++
		}
	}
	return false
}

// keyOf returns equal texts for values that JSON Schema considers equal: it compares
// numbers by value and ignores the order of keys.
func keyOf(v any) string {
	switch v := v.(type) {
	case json.Number:
		return numberText(v)
	case string:
		return quoted(v)
	}
	return string(appendKeyOf(nil, v))
}

func appendKeyOf(out []byte, v any) []byte {
	separator := func(i int) {
		if i > 0 {
			out = append(out, ',')
		}
	}
	switch v := v.(type) {
	case []any:
		out = append(out, '[')
		for i, x := range v {
			separator(i)
			out = appendKeyOf(out, x)
		}
		return append(out, ']')
	case *object:
		out = append(out, '{')
		for i, k := range slices.Sorted(slices.Values(v.keys)) {
			separator(i)
			out = appendKeyOf(append(append(out, quoted(k)...), ':'), v.values[k])
		}
		return append(out, '}')
	case json.Number, string:
		return append(out, keyOf(v)...)
	}
	return append(out, writeJSON(v)...)
}

// quoted returns the JSON of a string.
func quoted(text string) string {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			return writeJSON(text)
		}
	}
	return `"` + text + `"`
}

// numberText formats integers without point and exponent, so that 1, 1.0 and 1e0 are
// equal. Other numbers are formatted as the nearest double.
func numberText(n json.Number) string {
	text := n.String()
	if !strings.ContainsAny(text, ".eE") {
		if text == "-0" {
			return "0"
		}
		return text
	}
	if r, ok := rational(n); ok && r.IsInt() {
		return r.Num().String()
	}
	f, err := n.Float64()
	if err != nil {
		return text
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// writeJSON returns the compact JSON of a value, without HTML escapes.
func writeJSON(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	appendJSON(&out, e, v)
	return out.String()
}

// appendJSON appends the JSON of a value to out; e must write to out.
func appendJSON(out *bytes.Buffer, e *json.Encoder, v any) {
	switch v := v.(type) {
	case *object:
		out.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				out.WriteByte(',')
			}
			appendJSON(out, e, k)
			out.WriteByte(':')
			appendJSON(out, e, v.values[k])
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			appendJSON(out, e, x)
		}
		out.WriteByte(']')
	default:
		if err := e.Encode(v); err != nil {
			panic("bug: cannot encode a JSON value: " + err.Error())
		}
		out.Truncate(out.Len() - 1) // remove the line feed that the encoder appends
	}
}
