package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/iflowc/iflowc/runtime/kit/orderedjson"
)

// A Dict is a dictionary that keeps the insertion order of its keys.
type Dict struct {
	keys, vals []Value
	index      map[any]int
}

// NewDict returns an empty dictionary.
func NewDict() *Dict { return &Dict{index: map[any]int{}} }

// Set sets the value of a string key.
func (d *Dict) Set(key string, v Value) { d.put(nil, Text(key), v) }

// Get returns the value of a string key.
func (d *Dict) Get(key string) (Value, bool) {
	i, ok := d.index[key]
	if !ok {
		return nil, false
	}
	return d.vals[i], true
}

// Len returns the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

type noneKey struct{}

type tupleKey string

// hash returns a map key that Go compares as Python compares dictionary keys; ok is
// false for unhashable values. s may be nil if the value is no tuple.
func hash(s *state, v Value) (key any, ok bool) { return hashDeep(s, v, 0) }

func hashDeep(s *state, v Value, depth int) (key any, ok bool) {
	switch v := v.(type) {
	case nil:
		return noneKey{}, true
	case Str:
		return v.s, true
	case bool, int64:
		i, _, _, _ := number(v)
		return i, true
	case float64:
		if i := int64(v); float64(i) == v {
			return i, true
		}
		return v, true
	case *List:
		if !v.tuple || depth > maxNesting {
			return nil, false
		}
		var text []byte
		for _, item := range v.items {
			k, ok := hashDeep(s, item, depth+1)
			if !ok {
				return nil, false
			}
			written := fmt.Sprint(k)
			s.charge(1 + len(written)/8)
			text = strconv.AppendQuote(fmt.Appendf(text, "%T:", k), written)
			text = append(text, ',')
			s.checkLen(len(text))
		}
		return tupleKey(text), true
	case *Dict, *view:
		return nil, false
	}
	return v, true // other values are compared by identity
}

// put sets the value of a key; ok is false if the key is unhashable.
func (d *Dict) put(s *state, key, v Value) (ok bool) {
	k, ok := hash(s, key)
	if !ok {
		return false
	}
	if i, have := d.index[k]; have {
		d.vals[i] = v
		return true
	}
	d.index[k] = len(d.keys)
	d.keys = append(d.keys, key)
	d.vals = append(d.vals, v)
	return true
}

func (d *Dict) get(s *state, key Value) (Value, bool) {
	k, ok := hash(s, key)
	if !ok {
		return nil, false
	}
	i, ok := d.index[k]
	if !ok {
		return nil, false
	}
	return d.vals[i], true
}

// FromJSON decodes a JSON value. Dictionaries keep the order of keys, and all strings
// count as user text.
func FromJSON(data []byte) (Value, error) { return orderedjson.Read(data, maxNesting, fromJSON) }

var fromJSON = orderedjson.Maker[Value]{
	Object: func(keys []string, values []Value) Value {
		dict := NewDict()
		for i, k := range keys {
			dict.put(nil, UserText(k), values[i])
		}
		return dict
	},
	List: func(items []Value) Value { return &List{items: items} },
	Other: func(v any) Value {
		switch v := v.(type) {
		case json.Number:
			return parseNumber(v.String())
		case string:
			return UserText(v)
		}
		return v // nil or bool
	},
}

// maxNesting limits the nesting of lists in JSON and in expressions.
const maxNesting = 256

// parseNumber decodes a number as Python's json does: integers of any size, and floats.
func parseNumber(text string) Value {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if !bytes.ContainsAny([]byte(text), ".eE") {
		return bigInt(text)
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range: infinity, as in Python
	return f
}
