package grammar

import (
	"fmt"
	"slices"
)

// exclusive returns the schemas of a oneOf with disjoint values. It removes constants
// that two schemas contain, since they are valid for none. For other schemas it must be
// able to prove that they are disjoint, because a grammar cannot express the difference
// of two schemas; otherwise it records an error.
func (w *schemaWriter) exclusive(subs []any, path string) []any {
	out := slices.Clone(subs)
	whole := make([]any, len(subs)) // with resolved references
	values := make([][]any, len(subs))
	times := map[string]int{}
	for i, sub := range subs {
		whole[i] = w.resolvedOnce(sub, path)
		o, ok := whole[i].(*object)
		if !ok || !o.has("enum", "const") || !w.checkWords(o, path) {
			continue
		}
		values[i] = append([]any{}, w.finite(o, path)...)
		w.reading(true, func() bool {
			for _, v := range w.finite(o, path) {
				times[keyOf(v)]++
			}
			return true
		})
	}
	for i, list := range values {
		if list == nil {
			continue
		}
		list = slices.DeleteFunc(list, func(v any) bool { return times[keyOf(v)] > 1 })
		out[i] = false
		if len(list) > 0 {
			o := newObject()
			o.set("enum", list)
			out[i] = o
		}
	}
	for j := range subs {
		for i := range j {
			if !w.spend(1, path) {
				return out
			}
			if values[i] != nil && values[j] != nil || w.reading(true, func() bool { return w.disjoint(whole[i], whole[j], 0, path) }) {
				continue
			}
			w.fail(path, "schema %d and schema %d may have common values, and only schemas that are provably disjoint are supported; "+
				"use anyOf, or give both a required property with a different const", i, j)
			return out
		}
	}
	return out
}

// maxProof limits the depth of properties that disjoint examines.
const maxProof = 6

// disjoint reports whether provably no value is valid against both schemas. The caller
// must set w.loose.
func (w *schemaWriter) disjoint(a, b any, depth int, path string) bool {
	if depth > maxProof || !w.spend(16, path) {
		return false
	}
	a, b = w.resolvedOnce(a, path), w.resolvedOnce(b, path)
	if a == false || b == false {
		return true
	}
	x, xok := a.(*object)
	y, yok := b.(*object)
	if !xok || !yok || !w.checkWords(x, path) || !w.checkWords(y, path) {
		return false // true, or not a schema
	}
	return w.noneMeets(x, y, path) || w.noneMeets(y, x, path) || w.apart(x, y, depth, path) || w.apart(y, x, depth, path) || w.typesApart(x, y, depth, path)
}

// noneMeets reports whether x has constants of which none is valid against y.
func (w *schemaWriter) noneMeets(x, y *object, path string) bool {
	if !x.has("enum", "const") {
		return false
	}
	return !slices.ContainsFunc(w.finite(x, path), func(v any) bool { return w.valid(v, y, path) })
}

// apart reports whether x has alternatives that are all disjoint from y.
func (w *schemaWriter) apart(x, y *object, depth int, path string) bool {
	for _, word := range []string{"anyOf", "oneOf"} {
		subs, ok := x.values[word].([]any)
		if ok && !slices.ContainsFunc(subs, func(sub any) bool { return !w.disjoint(sub, y, depth+1, path) }) {
			return true
		}
	}
	return false
}

// typesApart reports whether for each type no value is valid against both.
func (w *schemaWriter) typesApart(x, y *object, depth int, path string) bool {
	common := mergeTypes(anyList(w.types(x, path)), anyList(w.types(y, path))).([]any)
	for _, t := range common {
		differ := false
		switch t {
		case "number", "integer":
			differ = w.rangesApart(x, y, path)
		case "string":
			differ = w.countsApart(x, y, "minLength", "maxLength", path)
		case "array":
			differ = w.countsApart(x, y, "minItems", "maxItems", path) || w.itemsApart(x, y, depth, path)
		case "object":
			differ = w.countsApart(x, y, "minProperties", "maxProperties", path) || w.propertiesApart(x, y, depth, path) || w.propertiesApart(y, x, depth, path)
		}
		if !differ {
			return false
		}
	}
	return w.err == nil
}

func anyList(names []string) []any {
	out := make([]any, len(names))
	for i, n := range names {
		out[i] = n
	}
	return out
}

func (w *schemaWriter) rangesApart(x, y *object, path string) bool {
	loX, hiX := w.limits(x, path)
	loY, hiY := w.limits(y, path)
	above := func(lo, hi *limit) bool { // no number is above lo and below hi
		return lo != nil && hi != nil && (!hi.allows(lo.value, -1) || lo.open && lo.value.Cmp(hi.value) == 0)
	}
	return above(loX, hiY) || above(loY, hiX)
}

func (w *schemaWriter) countsApart(x, y *object, least, most, path string) bool {
	loX, hiX := w.count(x, least, path), w.count(x, most, path)
	loY, hiY := w.count(y, least, path), w.count(y, most, path)
	return hiX >= 0 && hiX < loY || hiY >= 0 && hiY < loX
}

// itemsApart looks for an index that all arrays of both have, with disjoint values.
func (w *schemaWriter) itemsApart(x, y *object, depth int, path string) bool {
	prefixX, restX := w.itemsOf(x, path)
	prefixY, restY := w.itemsOf(y, path)
	n := max(w.count(x, "minItems", path), w.count(y, "minItems", path))
	for i := range min(n, max(len(prefixX), len(prefixY))+1) {
		a, b := restX, restY
		if i < len(prefixX) {
			a = prefixX[i]
		}
		if i < len(prefixY) {
			b = prefixY[i]
		}
		if w.disjoint(a, b, depth+1, fmt.Sprintf("%s/items/%d", path, i)) {
			return true
		}
	}
	return false
}

// propertiesApart looks for a property that all objects of x have, with values that y
// does not allow.
func (w *schemaWriter) propertiesApart(x, y *object, depth int, path string) bool {
	return slices.ContainsFunc(w.required(x, path), func(name string) bool {
		return w.disjoint(w.property(x, name, path), w.property(y, name, path), depth+1, path+"/properties/"+name)
	})
}
