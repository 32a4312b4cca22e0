package grammar

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// candidates returns the values in a schema's const and enum.
func (w *schemaWriter) candidates(o *object, path string) []any {
	var list []any
	if e, ok := o.get("enum"); ok {
		given, isList := e.([]any)
		if !isList || len(given) == 0 {
			w.fail(path+"/enum", "expected a list of values")
		}
		list = union(nil, given)
	}
	if !w.spend(weight(list)/8, path) {
		return nil
	}
	if c, ok := o.get("const"); ok {
		if o.has("enum") {
			return common([]any{c}, list)
		}
		return []any{c}
	}
	return list
}

// finite returns the values of a schema with const or enum that are valid against all
// its other keywords.
func (w *schemaWriter) finite(o *object, path string) []any {
	rest := o.clone(append([]string{"const", "enum"}, annotations...)...)
	list := w.candidates(o, path)
	if len(rest.keys) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(v any) bool { return !w.valid(v, rest, path) })
}

// valid reports whether a value is valid against a schema, by the supported keywords.
// It records an error if it cannot decide. Validators differ in formats, which many
// ignore, and in some characters of patterns: valid returns true if all accept the
// value or, while w.loose is set, if any may accept it.
func (w *schemaWriter) valid(v, schema any, path string) bool {
	if w.depth++; w.depth > maxDepth {
		w.fail(path, "schemas are nested deeper than %d, or references are cyclic", maxDepth)
	}
	defer func() { w.depth-- }()
	if !w.spend(4, path) {
		return false
	}
	switch s := schema.(type) {
	case bool:
		return s
	case *object:
		return w.checkWords(s, path) && w.validType(v, s, path) && w.validEnum(v, s, path) && w.validJoined(v, s, path) && w.validValue(v, s, path) && w.err == nil
	}
	w.fail(path, "expected an object, true or false, found %.40s", writeJSON(schema))
	return false
}

// reading calls evaluate with w.loose set to loose.
func (w *schemaWriter) reading(loose bool, evaluate func() bool) bool {
	before := w.loose
	defer func() { w.loose = before }()
	w.loose = loose
	return evaluate()
}

func (w *schemaWriter) validType(v any, o *object, path string) bool {
	return !o.has("type") || slices.ContainsFunc(w.types(o, path), func(t string) bool { return hasType(v, t) })
}

func hasType(v any, name string) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case *object:
		return name == "object"
	case json.Number:
		if name != "integer" {
			return name == "number"
		}
		r, ok := rational(v)
		return ok && r.IsInt()
	}
	return false
}

func (w *schemaWriter) validEnum(v any, o *object, path string) bool {
	if !o.has("enum", "const") {
		return true
	}
	known := w.enums[o]
	if known == nil {
		known = keysOf(w.candidates(o, path))
		w.enums[o] = known
	}
	return w.spend(weight(v)/8, path) && known[keyOf(v)]
}

// validJoined evaluates the keywords that apply schemas to the value itself.
func (w *schemaWriter) validJoined(v any, o *object, path string) bool {
	if ref, ok := o.get("$ref"); ok {
		target, name := w.lookup(ref, path)
		if w.err != nil || !w.valid(v, target, name) {
			return false
		}
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		given, ok := o.get(word)
		if !ok {
			continue
		}
		subs, isList := given.([]any)
		if !isList {
			w.fail(path+"/"+word, "expected a list of schemas")
			return false
		}
		count := func() (n int) {
			for i, sub := range subs {
				if w.valid(v, sub, fmt.Sprintf("%s/%s/%d", path, word, i)) {
					n++
				}
			}
			return n
		}
		switch word {
		case "allOf":
			ok = count() == len(subs)
		case "anyOf":
			ok = count() > 0
		case "oneOf":
			ok = w.validOneOf(count)
		}
		if !ok {
			return false
		}
	}
	return true
}

// validOneOf calls count, which returns the number of schemas that a value matches. The
// value is certainly valid if exactly one matches strictly and no other loosely. It may
// be valid if at least one matches loosely and at most one strictly.
func (w *schemaWriter) validOneOf(count func() int) bool {
	least, most := 0, 0
	w.reading(false, func() bool { least = count(); return true })
	w.reading(true, func() bool { most = count(); return true })
	if w.loose {
		return least <= 1 && most >= 1
	}
	return least == 1 && most == 1
}

func (w *schemaWriter) validValue(v any, o *object, path string) bool {
	switch v := v.(type) {
	case string:
		return w.validString(v, o, path)
	case json.Number:
		return w.validNumber(v, o, path)
	case []any:
		return w.validArray(v, o, path)
	case *object:
		return w.validObject(v, o, path)
	}
	return true
}

func (w *schemaWriter) inCount(n int, o *object, least, most, path string) bool {
	lo, hi := w.count(o, least, path), w.count(o, most, path)
	return n >= lo && (hi < 0 || n <= hi)
}

func (w *schemaWriter) validString(v string, o *object, path string) bool {
	if !w.inCount(utf8.RuneCountInString(v), o, "minLength", "maxLength", path) {
		return false
	}
	if format := w.formatOf(o, path); format != "" && !w.loose && !w.found("^(?:"+format+")$", v, path) {
		return false
	}
	if pattern, ok := w.patternOf(o, path); ok {
		odd := strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c > '~' }) // characters that dialects of patterns treat differently
		return w.loose && odd || w.found(pattern, v, path)
	}
	return w.err == nil
}

// found reports whether a pattern in Go's syntax matches a part of text.
func (w *schemaWriter) found(pattern, text, path string) bool {
	if !w.spend(len(pattern)*(8+len(text))/32, path) {
		return false
	}
	re := w.regexes[pattern]
	if re == nil {
		var err error
		if re, err = regexp.Compile(pattern); err != nil {
			w.fail(path+"/pattern", "%v", err)
			return false
		}
		w.regexes[pattern] = re
	}
	return re.MatchString(text)
}

func (w *schemaWriter) validNumber(v json.Number, o *object, path string) bool {
	if !o.has(numberWords...) {
		return true
	}
	r, ok := rational(v)
	if !ok {
		w.fail(path, "the constant %.40s is too large or too small to compare with limits; remove the constant or the limits", v)
		return false
	}
	lo, hi := w.limits(o, path)
	if w.err != nil || !lo.allows(r, 1) || !hi.allows(r, -1) {
		return false
	}
	step, ok := o.get("multipleOf")
	if !ok {
		return true
	}
	s, ok := rational(step)
	if !ok || s.Sign() <= 0 {
		w.fail(path+"/multipleOf", "expected a number above 0, found %.40s", writeJSON(step))
		return false
	}
	return new(big.Rat).Quo(r, s).IsInt()
}

// allows reports whether a number is above (sign 1) or below (sign -1) the limit.
func (l *limit) allows(r *big.Rat, sign int) bool {
	if l == nil {
		return true
	}
	c := r.Cmp(l.value) * sign
	return c > 0 || c == 0 && !l.open
}

func (w *schemaWriter) validArray(v []any, o *object, path string) bool {
	if !w.inCount(len(v), o, "minItems", "maxItems", path) {
		return false
	}
	prefix, rest := w.itemsOf(o, path)
	for i, item := range v {
		schema := rest
		if i < len(prefix) {
			schema = prefix[i]
		}
		if !w.valid(item, schema, path+"/items") {
			return false
		}
	}
	return true
}

func (w *schemaWriter) validObject(v, o *object, path string) bool {
	if !w.inCount(len(v.keys), o, "minProperties", "maxProperties", path) {
		return false
	}
	required := w.required(o, path)
	if !w.spend(len(required), path) || slices.ContainsFunc(required, func(name string) bool { return !v.has(name) }) {
		return false
	}
	for _, k := range v.keys {
		if !w.valid(v.values[k], w.property(o, k, path), path+"/properties/"+k) {
			return false
		}
	}
	return w.err == nil
}

// property returns the schema of the property with a name.
func (w *schemaWriter) property(o *object, name, path string) any {
	props, extra := w.propertiesOf(o, path)
	if schema, ok := props.get(name); ok {
		return schema
	}
	return extra
}
