package grammar

import (
	"encoding/json"
	"slices"
)

// maxProof limits the depth of values that empty examines.
const maxProof = 6

// disjoint reports whether certainly no value is in both expressions, in any reading.
func (w *schemaWriter) disjoint(a, b *expr, path string) bool {
	key := [2]int32{min(a.id, b.id), max(a.id, b.id)}
	known, ok := w.apart[key]
	if !ok {
		known = w.reading(true, func() bool {
			return w.prove(func() bool {
				x, y := w.shapes(a, false), w.shapes(b, false)
				for k := range kinds {
					if !w.apartShapes(k, x[k], y[k], path) {
						return false
					}
				}
				return w.err == nil
			})
		})
		w.apart[key] = known
	}
	return known
}

func (w *schemaWriter) apartShapes(k kind, a, b []*shape, path string) bool {
	for _, x := range a {
		for _, y := range b {
			if !w.spend(20, path) {
				return false
			}
			if s := w.join(k, x, y, path); s != nil && !w.emptyShape(k, s, path, 0) {
				return false
			}
		}
	}
	return true
}

// prove reports whether a property of sets certainly holds. The sets that are being
// determined are not known yet, so nothing that depends on them is certain.
func (w *schemaWriter) prove(property func() bool) bool {
	before := w.unsure
	w.proofs++
	w.unsure = false
	holds := property() && !w.unsure
	w.proofs--
	w.unsure = before
	return holds
}

// empty reports whether an expression certainly contains no value, in the current
// reading.
func (w *schemaWriter) empty(n *expr, path string, depth int) bool {
	if depth > maxProof || w.err != nil {
		return false
	}
	return w.prove(func() bool {
		for k, list := range w.shapes(n, false) {
			for _, s := range list {
				if !w.spend(4, path) || !w.emptyShape(kind(k), s, path, depth) {
					return false
				}
			}
		}
		return true
	})
}

func (w *schemaWriter) emptyShape(k kind, s *shape, path string, depth int) bool {
	switch {
	case s.values != nil:
		return len(s.values) == 0
	case s.free():
		return false
	case k == kindNumber:
		return !s.number.possible()
	case k == kindString:
		return depth < maxProof && w.emptyTexts(s.texts)
	case k == kindArray:
		return w.emptyArrays(s.array, path, depth)
	}
	return slices.ContainsFunc(s.object.required, func(name string) bool {
		return w.empty(w.property(s.object, name), path, depth+1) || !w.holds(name, w.all(s.object.keys...))
	})
}

// emptyTexts reports whether no string meets all tests. A single test that need not
// fail is met by some string, or the schema is of no use.
func (w *schemaWriter) emptyTexts(tests []textTest) bool {
	if len(tests) < 2 && !tests[0].not {
		return false
	}
	key := testsKey(tests)
	if w.loose {
		key = "loose " + key
	}
	known, ok := w.noText[key]
	if !ok {
		d, err := w.automaton([][]textTest{tests}, maxAutomaton)
		known = err == nil && d.empty()
		w.noText[key] = known
	}
	return known
}

func (w *schemaWriter) emptyArrays(a *arrayShape, path string, depth int) bool {
	for i := range min(a.lo, len(a.prefix)+1) {
		if w.empty(a.item(i), path, depth+1) {
			return true
		}
	}
	return false
}

// weight returns the approximate length of a value's JSON, and a constant for the work
// on each value in it.
func weight(v any) int {
	n := 12
	switch v := v.(type) {
	case *object:
		for _, k := range v.keys {
			n += len(k) + weight(v.values[k])
		}
	case []any:
		for _, x := range v {
			n += weight(x)
		}
	case string:
		n += len(v)
	case json.Number:
		n += len(v)
	}
	return n
}

// keysOf returns the values of a list as comparable texts.
func keysOf(list []any) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, v := range list {
		set[keyOf(v)] = true
	}
	return set
}

func common(a, b []any) []any {
	inB := keysOf(b)
	return slices.DeleteFunc(slices.Clone(a), func(v any) bool { return !inB[keyOf(v)] })
}

func united(a, b []any) []any {
	out, seen := slices.Clone(a), keysOf(a)
	for _, v := range b {
		if key := keyOf(v); !seen[key] {
			seen[key] = true
			out = append(out, v)
		}
	}
	return out
}
