// Package orderedjson reads JSON and keeps the order of object keys. A schema's
// property order determines that of the answer, the order of tool call arguments that
// of the prompt.
package orderedjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrDeep is returned for values that are nested too deep.
var ErrDeep = errors.New("values are nested too deep")

// A Maker constructs the caller's representation of JSON values.
type Maker[V any] struct {
	Object func(keys []string, values []V) V // keys in order, duplicates included
	List   func(items []V) V
	Other  func(v any) V // a string, a json.Number, a bool or nil
}

// Read reads the single value in data, with at most deepest levels of nesting. Errors
// contain the byte offset.
func Read[V any](data []byte, deepest int, m Maker[V]) (V, error) {
	r := reader[V]{d: json.NewDecoder(bytes.NewReader(data)), deepest: deepest, m: m}
	r.d.UseNumber()
	v, err := r.value(0)
	if err != nil {
		return v, err
	}
	if _, err := r.d.Token(); err != io.EOF {
		return v, fmt.Errorf("unexpected data after the JSON value, at byte %d", r.d.InputOffset())
	}
	return v, nil
}

type reader[V any] struct {
	d       *json.Decoder
	deepest int
	m       Maker[V]
}

func (r *reader[V]) value(depth int) (v V, err error) {
	if depth > r.deepest {
		return v, fmt.Errorf("%w: more than %d levels of JSON, at byte %d", ErrDeep, r.deepest, r.d.InputOffset())
	}
	token, err := r.token()
	if err != nil {
		return v, err
	}
	bracket, ok := token.(json.Delim)
	if !ok {
		return r.m.Other(token), nil
	}
	var keys []string
	items := []V{}
	for r.d.More() {
		if bracket == '{' {
			key, err := r.token()
			if err != nil {
				return v, err
			}
			keys = append(keys, key.(string)) // the decoder returns only strings as keys
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return v, err
		}
		items = append(items, item)
	}
	if _, err := r.token(); err != nil { // the closing bracket
		return v, err
	}
	if bracket == '{' {
		return r.m.Object(keys, items), nil
	}
	return r.m.List(items), nil
}

func (r *reader[V]) token() (json.Token, error) {
	token, err := r.d.Token()
	if err != nil {
		return nil, fmt.Errorf("JSON at byte %d: %w", r.d.InputOffset(), err)
	}
	return token, nil
}
