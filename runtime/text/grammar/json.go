package grammar

import (
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

// remove removes a key.
func (o *object) remove(key string) {
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
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
func keyOf(v any) string { return string(appendJSON(nil, v, true)) }

// writeJSON returns the compact JSON of a value.
func writeJSON(v any) string { return string(appendJSON(nil, v, false)) }

// appendJSON appends the JSON of a value; with equal, equal texts for equal values.
func appendJSON(out []byte, v any, equal bool) []byte {
	switch v := v.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, v)
	case string:
		return appendQuoted(out, v)
	case json.Number:
		if equal {
			return append(out, numberText(v)...)
		}
		return append(out, v...)
	case []any:
		out = append(out, '[')
		for i, x := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSON(out, x, equal)
		}
		return append(out, ']')
	case *object:
		keys := v.keys
		if equal {
			keys = slices.Sorted(slices.Values(keys))
		}
		out = append(out, '{')
		for i, k := range keys {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSON(append(appendQuoted(out, k), ':'), v.values[k], equal)
		}
		return append(out, '}')
	}
	panic(fmt.Sprintf("bug: %T is not a JSON value", v))
}

// appendQuoted appends the JSON of a string. It escapes what must be escaped, as shortly
// as possible, and nothing else: equal strings are written alike.
func appendQuoted(out []byte, text string) []byte {
	out = append(slices.Grow(out, len(text)+2), '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= ' ':
			out = append(out, c)
		case c == '\b', c == '\f', c == '\n', c == '\r', c == '\t':
			out = append(out, '\\', "btn_fr"[c-'\b'])
		default:
			out = fmt.Appendf(out, "\\u%04x", c)
		}
	}
	return append(out, '"')
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
	r, ok := rational(n)
	if ok && r.IsInt() {
		return r.Num().String()
	}
	f, err := n.Float64()
	switch {
	case err != nil:
		return text
	case ok:
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}
