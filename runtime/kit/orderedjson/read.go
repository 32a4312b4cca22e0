// Package orderedjson reads JSON whose objects keep their keys in the order of
// the text: the order of a schema's properties is that of the answer's, and the
// order of a tool's arguments that of the prompt.
package orderedjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrDeep is the error of values that nest deeper than the reader allows.
var ErrDeep = errors.New("values nest too deep")

// A Maker makes the reader's kind of values.
type Maker[V any] struct {
	Object func(keys []string, values []V) V // keys in order; one that is there twice comes twice
	List   func(items []V) V
	Other  func(v any) V // a string, a json.Number, a bool or nil
}

// Read reads the one value that data holds, nested deepest levels at most.
// Errors name the byte at which they were found.
func Read[V any](data []byte, deepest int, m Maker[V]) (V, error) {
	r := reader[V]{d: json.NewDecoder(bytes.NewReader(data)), deepest: deepest, m: m}
	r.d.UseNumber()
	v, err := r.value(0)
	if err != nil {
		return v, err
	}
	if _, err := r.d.Token(); err != io.EOF {
		return v, fmt.Errorf("more follows after the JSON value, at byte %d", r.d.InputOffset())
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
			keys = append(keys, key.(string)) // the decoder gives nothing else as a key
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return v, err
		}
		items = append(items, item)
	}
	if _, err := r.token(); err != nil { // the bracket that closes
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
