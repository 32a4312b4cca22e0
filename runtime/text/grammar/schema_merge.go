package grammar

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
)

// normal returns a schema in the form that merge expects: const as an enum of one
// value, and draft 4's boolean exclusive limits as numbers.
func (w *schemaWriter) normal(o *object, path string) *object {
	out := o.clone("const", "nullable")
	if o.has("const") {
		out.set("enum", w.candidates(o, path))
	}
	for word, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		flag, isFlag := o.values[exclusive].(bool)
		if !isFlag || !w.drafts("draft-03", "draft-04") {
			continue
		}
		out = out.clone(exclusive)
		if limit, ok := o.get(word); ok && flag {
			out = out.clone(word)
			out.set(exclusive, limit)
		}
	}
	return out
}

// mergeWord merges two values of one keyword.
func (w *schemaWriter) mergeWord(word string, a, b any, path string) any {
	switch word {
	case "properties":
		return w.mergeProperties(a, b, path)
	case "additionalProperties":
		return both(a, b)
	}
	if !w.spend((weight(a)+weight(b))/4, path) || keyOf(a) == keyOf(b) {
		return a
	}
	switch word {
	case "type":
		return mergeTypes(a, b)
	case "enum", "required", "anyOf", "oneOf":
		x, xok := a.([]any)
		y, yok := b.([]any)
		switch {
		case !xok || !yok:
			w.fail(path+"/"+word, "expected a list")
			return a
		case word == "enum":
			return common(x, y)
		case word == "required":
			return union(x, y)
		}
		return w.product(x, y, path)
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return w.pick(a, b, 1, path+"/"+word)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return w.pick(a, b, -1, path+"/"+word)
	}
	w.fail(path, "two different values of %q apply, %.40s and %.40s, which is not supported; write one value that combines them", word, writeJSON(a), writeJSON(b))
	return a
}

// weight returns the approximate length of a value's JSON.
func weight(v any) int {
	n := 2
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

func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
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

func union(a, b []any) []any {
	out, seen := slices.Clone(a), keysOf(a)
	for _, v := range b {
		if key := keyOf(v); !seen[key] {
			seen[key] = true
			out = append(out, v)
		}
	}
	return out
}

// mergeTypes returns the types in both; integers are numbers.
func mergeTypes(a, b any) any {
	var out []any
	for _, i := range asList(a) {
		for _, j := range asList(b) {
			x, _ := i.(string)
			y, _ := j.(string)
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

func (w *schemaWriter) mergeProperties(a, b any, path string) any {
	x, xok := a.(*object)
	y, yok := b.(*object)
	if !xok || !yok {
		w.fail(path+"/properties", "expected an object of schemas")
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

// product returns the alternatives that are valid where one of a and one of b is valid.
func (w *schemaWriter) product(a, b []any, path string) any {
	const most = 256
	if len(a)*len(b) > most {
		w.fail(path, "more than %d combinations of alternatives", most)
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

// pick returns the larger (sign 1) or smaller (-1) of two numbers.
func (w *schemaWriter) pick(a, b any, sign int, path string) any {
	x, xok := rational(a)
	y, yok := rational(b)
	if !xok || !yok {
		w.fail(path, "expected numbers within 1e60, found %.40s and %.40s", writeJSON(a), writeJSON(b))
		return a
	}
	if x.Cmp(y)*sign < 0 {
		return b
	}
	return a
}

// mergeItems merges the array keywords of two schemas: each item must be valid against
// both.
func (w *schemaWriter) mergeItems(out, x, y *object, path string) *object {
	words := []string{"prefixItems", "items", "additionalItems"}
	if !x.has(words...) || !y.has(words...) {
		return out
	}
	px, restX := w.itemsOf(x, path)
	py, restY := w.itemsOf(y, path)
	out = out.clone(words...)
	var prefix []any
	for i := range max(len(px), len(py)) {
		a, b := restX, restY
		if i < len(px) {
			a = px[i]
		}
		if i < len(py) {
			b = py[i]
		}
		prefix = append(prefix, both(a, b))
	}
	if rest := both(restX, restY); len(prefix) == 0 {
		out.set("items", rest)
	} else if w.drafts("2020-12") {
		out.set("prefixItems", prefix)
		out.set("items", rest)
	} else {
		out.set("items", prefix)
		out.set("additionalItems", rest)
	}
	return out
}

// hugeExponent matches numbers with an exact value of a megabyte or more.
var hugeExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{3}`)

// rational returns the exact value of a JSON number; ok is false for a huge exponent.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 400 || hugeExponent.MatchString(n.String()) {
		return nil, false
	}
	if f, err := n.Float64(); err != nil || f != 0 && (f > 1e60 || f < -1e60 || f < 1e-60 && f > -1e-60) {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}
