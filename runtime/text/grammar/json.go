package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/iflowc/iflowc/runtime/kit/orderedjson"
)

// An object of JSON with its keys in the order of the text, which is the order
// in which a schema's properties are written.
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

// set adds or changes a value; a new key goes last.
func (o *object) set(key string, v any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = v
}

func newObject() *object { return &object{values: map[string]any{}} }

// clone copies the object without keys.
func (o *object) clone(without ...string) *object {
	c := newObject()
next:
	for _, k := range o.keys {
		for _, w := range without {
			if k == w {
				continue next
			}
		}
		c.set(k, o.values[k])
	}
	return c
}

// readJSON reads one value: *object, []any, string, json.Number, bool or nil.
func readJSON(data []byte) (any, error) {
	if len(data) > maxSource {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrTooLarge, len(data), maxSource)
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

// writeJSON gives the compact text of a value, without HTML escapes.
func writeJSON(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	appendJSON(&out, e, v)
	return out.String()
}

// appendJSON writes a value behind what out holds; e writes to out.
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
			panic("bug: a value of JSON cannot be written: " + err.Error())
		}
		out.Truncate(out.Len() - 1) // the encoder ends its values with a line end
	}
}
