package jinja

// A Value is the value of an expression: nil (None), bool, int64, bigInt, float64, Str,
// *List, *Dict, or one of the kinds that only templates create (undefined, tuples,
// ranges, generators, functions, …).
type Value any

// A List is an immutable list or tuple.
type List struct {
	items []Value
	tuple bool
	group bool // an item of groupby, which has named parts
}

// NewList returns a list.
func NewList(items ...Value) *List { return &List{items: items} }

func newTuple(items ...Value) *List { return &List{items: items, tuple: true} }

// bigInt is an integer beyond int64, stored as its digits. Templates print such numbers
// from JSON schemas, but do not compute with them.
type bigInt string

// undefined is the value of a missing variable or key.
type undefined struct {
	message string
	unsafe  bool // a method that modifies its object: an error when used
}

// namespace is an object with attributes that templates may set.
type namespace struct{ vars *Dict }

// pyRange is range(start, stop, step).
type pyRange struct{ start, stop, step int64 }

func (r pyRange) len() int {
	switch {
	case r.step > 0 && r.start < r.stop:
		return int((r.stop-r.start-1)/r.step) + 1
	case r.step < 0 && r.start > r.stop:
		return int((r.start-r.stop-1)/-r.step) + 1
	}
	return 0
}

func (r pyRange) at(i int) Value { return r.start + int64(i)*r.step }

// A generator yields its items once.
type generator struct {
	items []Value
	name  string // name of its type for messages
}

// view is the result of items, keys or values of a dictionary.
type view struct {
	dict *Dict
	kind string // "items", "keys", "values"
}

func (v *view) items() []Value {
	out := make([]Value, len(v.dict.keys))
	for i, k := range v.dict.keys {
		switch v.kind {
		case "keys":
			out[i] = k
		case "values":
			out[i] = v.dict.vals[i]
		default:
			out[i] = newTuple(k, v.dict.vals[i])
		}
	}
	return out
}

// A function is a callable value.
type function struct {
	name string
	call func(s *state, a args) Value
}

// typeName returns Python's name of a value's type.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, bigInt:
		return "int"
	case float64:
		return "float"
	case Str:
		return "str"
	case *List:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case pyRange:
		return "range"
	case *generator:
		return v.name
	case *view:
		return "dict_" + v.kind
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	case *joiner:
		return "Joiner"
	}
	return "function"
}

// describe returns the description of a value for messages about missing attributes.
func describe(v Value) string {
	switch v.(type) {
	case nil:
		return "None"
	case *namespace:
		return "jinja2.utils.Namespace object"
	case *macro, *loop:
		return "jinja2.runtime." + typeName(v) + " object"
	}
	return typeName(v) + " object"
}

// truth is Python's bool().
func truth(v Value) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case Str:
		return v.s != ""
	case *List:
		return len(v.items) > 0
	case *Dict:
		return len(v.keys) > 0
	case pyRange:
		return v.len() > 0
	case *view:
		return len(v.dict.keys) > 0
	}
	return true
}

// number converts an int, a float or a boolean (0 or 1) to a number for arithmetic.
func number(v Value) (i int64, f float64, isFloat, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, false, true
		}
		return 0, 0, false, true
	case int64:
		return v, float64(v), false, true
	case float64:
		return 0, v, true, true
	}
	return 0, 0, false, false
}
