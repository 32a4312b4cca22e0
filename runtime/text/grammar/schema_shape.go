package grammar

import (
	"encoding/json"
	"slices"
)

// A kind is a type of JSON values.
type kind int

const (
	kindNull kind = iota
	kindTrue
	kindFalse
	kindNumber
	kindString
	kindArray
	kindObject
	kinds
)

func kindOf(v any) kind {
	switch v := v.(type) {
	case bool:
		if v {
			return kindTrue
		}
		return kindFalse
	case json.Number:
		return kindNumber
	case string:
		return kindString
	case []any:
		return kindArray
	case *object:
		return kindObject
	}
	return kindNull
}

// A shape is a set of values of one kind that meet a list of conditions. Without
// conditions it contains all values of the kind.
type shape struct {
	typed  bool  // a keyword restricts the types of values
	values []any // if not nil, the only values; other conditions are nil

	number *numberShape
	texts  []textTest
	array  *arrayShape
	object *objectShape

	conditions []int32 // see listed
}

func (s *shape) free() bool {
	return s.values == nil && s.number == nil && s.texts == nil && s.array == nil && s.object == nil
}

// A shapeSet lists shapes by kind. A value belongs to the set if it is in one of them.
type shapeSet [kinds][]*shape

// everything returns the set of all values.
func everything() shapeSet {
	var set shapeSet
	for k := range set {
		set[k] = []*shape{{}}
	}
	return set
}

// restricted returns all values, of one kind only those of a shape.
func restricted(k kind, s *shape) shapeSet {
	set := everything()
	set[k] = []*shape{s}
	return set
}

// maxShapes limits the alternatives of one kind.
const maxShapes = 4096

// simplified removes the shapes that another contains, and joins lists of values.
func (w *schemaWriter) simplified(list []*shape, path string) []*shape {
	if i := slices.IndexFunc(list, (*shape).free); i >= 0 {
		return list[i : i+1]
	}
	isList := func(s *shape) bool { return s.values != nil }
	first := slices.IndexFunc(list, isList)
	if first < 0 || !slices.ContainsFunc(list[first+1:], isList) {
		return list
	}
	joined := &shape{typed: true}
	out := []*shape{joined}
	for _, s := range list {
		if s.values == nil {
			out = append(out, s)
			continue
		}
		joined.typed = joined.typed && s.typed
		joined.values = append(joined.values, s.values...)
	}
	if !w.spend(weight(joined.values)/8, path) {
		return nil
	}
	joined.values = united(nil, joined.values)
	return out
}

func (w *schemaWriter) checked(list []*shape, path string) []*shape {
	if len(list) > maxShapes {
		w.fail(path, "more than %d combinations of alternatives; use fewer alternatives in allOf, anyOf, oneOf, not, if and the dependent keywords", maxShapes)
		return nil
	}
	return list
}

// both returns the values that are in two sets.
func (w *schemaWriter) both(a, b shapeSet, path string) shapeSet {
	var out shapeSet
	for k := range out {
		var list []*shape
		for _, x := range a[k] {
			for _, y := range b[k] {
				if !w.spend(2, path) {
					return shapeSet{}
				}
				if s := w.join(kind(k), x, y, path); s != nil {
					list = append(list, s)
				}
			}
			w.checked(list, path)
		}
		out[k] = w.absorbed(w.simplified(list, path), path)
	}
	return out
}

// join returns the values that are in two shapes, or nil if there are certainly none.
func (w *schemaWriter) join(k kind, a, b *shape, path string) *shape {
	typed := a.typed || b.typed
	with := func(s *shape) *shape {
		if s.typed == typed {
			return s
		}
		c := *s
		c.typed = typed
		return &c // with the same conditions
	}
	switch {
	case a == b || b.free():
		return with(a)
	case a.free():
		return with(b)
	case a.values == nil && b.values == nil:
		out := &shape{typed: typed}
		possible := true
		switch k {
		case kindNumber:
			out.number, possible = w.joinNumbers(a.number, b.number)
		case kindString:
			out.texts = joinTexts(a.texts, b.texts)
			possible = w.spend(len(out.texts)+len(a.texts)*len(b.texts)/8, path)
		case kindArray:
			out.array, possible = w.joinArrays(a.array, b.array)
		case kindObject:
			out.object, possible = w.joinObjects(a.object, b.object, path)
		}
		if !possible {
			return nil
		}
		return out
	}
	if a.values == nil {
		a, b = b, a
	}
	var values []any
	if b.values != nil {
		if !w.spend((weight(a.values)+weight(b.values))/8, path) {
			return nil
		}
		values = common(a.values, b.values)
	} else {
		for _, v := range a.values {
			if w.err != nil {
				return nil
			}
			if w.fits(v, b, path) {
				values = append(values, v)
			}
		}
	}
	if len(values) == 0 || w.err != nil {
		return nil
	}
	return &shape{typed: typed, values: values}
}

// fits reports whether a value of the same kind is in a shape, in the current reading.
func (w *schemaWriter) fits(v any, s *shape, path string) bool {
	if !w.spend(4, path) {
		return false
	}
	if s.values != nil {
		known := w.valueKeys[s]
		if known == nil {
			known = keysOf(s.values)
			w.valueKeys[s] = known
		}
		return w.spend(weight(v)/8, path) && known[keyOf(v)]
	}
	switch v := v.(type) {
	case json.Number:
		return s.number == nil || w.numberFits(v, s.number, path)
	case string:
		return !slices.ContainsFunc(s.texts, func(t textTest) bool { return !w.textFits(v, t) })
	case []any:
		return s.array == nil || w.arrayFits(v, s.array)
	case *object:
		return s.object == nil || w.objectFits(v, s.object)
	}
	return true
}

// outside returns the values that are not in a leaf.
func (w *schemaWriter) outside(set shapeSet, path string) shapeSet {
	var out shapeSet
	for k, list := range set {
		if len(list) == 0 {
			out[k] = []*shape{{typed: true}}
			continue
		}
		out[k] = w.except(kind(k), list[0], path)
	}
	return out
}

// except returns the values of a kind that are not in a shape.
func (w *schemaWriter) except(k kind, s *shape, path string) []*shape {
	if s.free() {
		return nil
	}
	if s.values != nil && (k == kindArray || k == kindObject) {
		return w.exceptConstants(k, s.values, path)
	}
	var list []*shape
	switch k {
	case kindNumber:
		for _, n := range w.exceptNumbers(s, path) {
			list = append(list, &shape{number: n})
		}
	case kindString:
		tests := s.texts
		if s.values != nil {
			tests = []textTest{w.wordsTest(s.values, path)}
		}
		for _, t := range tests {
			t.not = !t.not
			if t.kind == testFormat && t.not && !w.loose {
				continue // every string may have the format; see patternOf
			}
			list = append(list, &shape{texts: []textTest{t}})
		}
	case kindArray:
		for _, a := range w.exceptArrays(s.array) {
			list = append(list, &shape{array: a})
		}
	case kindObject:
		for _, o := range w.exceptObjects(s.object) {
			list = append(list, &shape{object: o})
		}
	}
	return w.checked(list, path)
}
