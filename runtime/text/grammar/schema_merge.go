package grammar

import (
	"encoding/json"
	"math/big"
	"slices"
)

// mergeWord joins two values of one keyword.
func (w *schemaWriter) mergeWord(word string, a, b any, path string) any {
	switch word {
	case "type":
		return mergeTypes(a, b)
	case "enum":
		return common(asList(a), asList(b))
	case "required":
		return union(asList(a), asList(b))
	case "properties":
		return mergeProperties(a, b)
	case "additionalProperties", "items", "additionalItems":
		return both(a, b)
	case "anyOf", "oneOf":
		return w.product(asList(a), asList(b), path)
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return pick(a, b, 1)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return pick(a, b, -1)
	}
	w.fail(path, "two different values of %q hold at once, %.40s and %.40s; this is not supported", word, writeJSON(a), writeJSON(b))
	return a
}

func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// textsOf gives the values of a list as JSON, by which they compare.
func textsOf(list []any) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, v := range list {
		set[writeJSON(v)] = true
	}
	return set
}

func common(a, b []any) []any {
	inB := textsOf(b)
	return slices.DeleteFunc(slices.Clone(a), func(v any) bool { return !inB[writeJSON(v)] })
}

func union(a, b []any) []any {
	out, seen := slices.Clone(a), textsOf(a)
	for _, v := range b {
		if text := writeJSON(v); !seen[text] {
			seen[text] = true
			out = append(out, v)
		}
	}
	return out
}

// mergeTypes gives the types of both; integers are numbers.
func mergeTypes(a, b any) any {
	var out []any
	for _, x := range asList(a) {
		for _, y := range asList(b) {
			switch {
			case x == y || x == "integer" && y == "number":
				out = append(out, x)
			case x == "number" && y == "integer":
				out = append(out, y)
			}
		}
	}
	return out
}

func mergeProperties(a, b any) any {
	x, xok := a.(*object)
	y, yok := b.(*object)
	if !xok || !yok {
		return a
	}
	out := x.clone()
	for _, k := range y.keys {
		if old, ok := out.get(k); ok {
			out.set(k, both(old, y.values[k]))
		} else {
			out.set(k, y.values[k])
		}
	}
	return out
}

// product gives the alternatives that hold where one of a and one of b hold.
func (w *schemaWriter) product(a, b []any, path string) any {
	const most = 256
	if len(a)*len(b) > most {
		w.fail(path, "over %d combinations of alternatives", most)
		return a
	}
	var out []any
	for _, x := range a {
		for _, y := range b {
			out = append(out, both(x, y))
		}
	}
	return out
}

// pick gives the larger (sign 1) or smaller (-1) of two numbers.
func pick(a, b any, sign int) any {
	x, xok := rational(a)
	y, yok := rational(b)
	if xok && yok && x.Cmp(y)*sign < 0 {
		return b
	}
	return a
}

// rational reads a number of JSON exactly; one with a huge exponent is none.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 400 {
		return nil, false
	}
	if f, err := n.Float64(); err != nil || f != 0 && (f > 1e60 || f < -1e60 || f < 1e-60 && f > -1e-60) {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}
