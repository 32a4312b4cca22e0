package grammar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A valueType is a type of the values of keywords.
type valueType int

const (
	anyValue     valueType = iota
	aSchema                // an object, true or false
	aType                  // the name of a type, or a list of them
	aText                  // a string
	aFlag                  // true or false
	aNumber                // a number
	aLimit                 // a number or, in draft 4, true or false
	aStep                  // a number above 0
	aCount                 // a whole number, 0 or more
	names                  // a list of strings
	valueList              // a list of values, at least one
	schemaList             // a list of schemas, at least one
	itemSchemas            // a schema, or a list of them
	tuple                  // a list of schemas
	byName                 // schemas by name
	namesByName            // lists of strings by name
	eitherByName           // lists of strings, or schemas, by name
)

// described are the types in warnings.
var described = map[valueType]string{
	aSchema: "an object, true or false", aType: "one of " + strings.Join(typeNames, ", ") + ", integer, or a list of these", aText: "a string", aFlag: "true or false",
	aNumber: "a number", aLimit: "a number", aStep: "a number above 0", aCount: "a whole number, 0 or more", names: "a list of names", valueList: "a list of values",
	schemaList: "a list of schemas", itemSchemas: "a schema", tuple: "a list of schemas", byName: "an object of schemas", namesByName: "an object of lists of names",
	eitherByName: "an object of schemas or lists of names",
}

// fits reports whether a value is of the type.
func (t valueType) fits(v any) bool {
	switch t {
	case aSchema:
		return isSchema(v)
	case aType:
		list, isList := v.([]any)
		if !isList {
			list = []any{v}
		}
		return len(list) > 0 && every(list, isTypeName)
	case aText:
		return isText(v)
	case aFlag:
		return isFlag(v)
	case aNumber:
		return isNumber(v)
	case aLimit:
		return isNumber(v) || isFlag(v)
	case aStep:
		n, ok := v.(json.Number)
		return ok && n[0] != '-' && strings.Trim(mantissa(n), "0.") != ""
	case aCount:
		return isCount(v)
	case names:
		return isListOf(v, isText)
	case valueList:
		list, isList := v.([]any)
		return isList && len(list) > 0
	case schemaList:
		list, _ := v.([]any)
		return len(list) > 0 && every(list, isSchema)
	case itemSchemas:
		return isSchema(v) || isListOf(v, isSchema)
	case tuple:
		return isListOf(v, isSchema)
	case byName, namesByName, eitherByName:
		_, isObject := v.(*object)
		return isObject
	}
	return true
}

// member returns the type of the values of an object by name.
func (t valueType) member(v any) valueType {
	_, isList := v.([]any)
	if t == namesByName || t == eitherByName && isList {
		return names
	}
	return aSchema
}

func every(list []any, is func(any) bool) bool {
	return !slices.ContainsFunc(list, func(v any) bool { return !is(v) })
}

func isListOf(v any, is func(any) bool) bool {
	list, isList := v.([]any)
	return isList && every(list, is)
}

func isSchema(v any) bool {
	_, isObject := v.(*object)
	return isObject || isFlag(v)
}

func isText(v any) bool {
	_, is := v.(string)
	return is
}

func isFlag(v any) bool {
	_, is := v.(bool)
	return is
}

func isNumber(v any) bool {
	_, is := v.(json.Number)
	return is
}

func isTypeName(v any) bool {
	name, _ := v.(string)
	return name == "integer" || slices.Contains(typeNames, name)
}

// mantissa returns the digits of a number without its exponent.
func mantissa(n json.Number) string {
	digits, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	return digits
}

// isCount reports whether a value is a whole number, 0 or more. One that is too large for
// an exact value is whole.
func isCount(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	if r, ok := rational(n); ok {
		return r.IsInt() && r.Sign() >= 0
	}
	f, err := n.Float64()
	return n[0] != '-' && (err != nil || f >= 1)
}

// checkWords removes the keywords of a schema that are ignored with a warning: those with
// a value of another type, which no validator could apply. A warning also names keywords
// that look like misspelled ones. Other unknown keywords are annotations (JSON Schema
// 2020-12, core, 6.5).
func (w *schemaWriter) checkWords(o *object, path string) bool {
	if w.known[o] {
		return w.err == nil
	}
	w.known[o] = true
	for _, word := range slices.Clone(o.keys) {
		v := o.values[word]
		switch t, known := keywords[word]; {
		case word == "$recursiveRef":
			w.fail(path, "keyword %q is not supported; write $ref", word)
		case !known && !annotations[word] && w.spend(128, path):
			if meant := misspelled(word); meant != "" {
				w.warn(path+"/"+word, "this is no keyword and was ignored; %s is one", meant)
			}
		case !known || !w.spend(1, path):
		case !w.inDraft(o, word, v):
			w.warn(path+"/"+word, "the schema's draft has no such keyword or value, so it was ignored")
			o.remove(word)
		case !t.fits(v):
			w.warn(path+"/"+word, "expected %s, so %.40s was ignored", described[t], writeJSON(v))
			o.remove(word)
		case t == byName || t == namesByName || t == eitherByName:
			w.checkMembers(v.(*object), t, path+"/"+word)
		}
	}
	return w.err == nil
}

// inDraft reports whether the schema's draft has a keyword with this type of value.
func (w *schemaWriter) inDraft(o *object, word string, v any) bool {
	switch {
	case word == "prefixItems":
		return w.drafts("2020-12")
	case word == "items" && !isSchema(v): // prefixItems in older drafts
		return !o.has("prefixItems") && w.drafts("draft-0", "2019-09")
	case keywords[word] == aLimit && isFlag(v):
		return w.drafts("draft-03", "draft-04")
	}
	return true
}

// checkMembers checks the values of a keyword's object: schemas, or lists of names.
func (w *schemaWriter) checkMembers(o *object, t valueType, path string) {
	for _, name := range o.keys {
		v := o.values[name]
		one := t.member(v)
		if !w.spend(1, path) {
			return
		}
		if one.fits(v) {
			continue
		}
		w.warn(path+"/"+name, "expected %s, so %.40s was ignored", described[one], writeJSON(v))
		if o.values[name] = true; one == names {
			o.values[name] = []any{}
		}
	}
}

// maxWarnings limits the warnings of one grammar.
const maxWarnings = 16

// warn records what is ignored, with its location in the schema.
func (w *schemaWriter) warn(path, format string, args ...any) {
	if len(w.warnings) < maxWarnings {
		w.warnings = append(w.warnings, "schema at "+shortened(path)+": "+fmt.Sprintf(format, args...))
	}
}

// misspelled returns the keyword that affects validity and that an unknown word looks
// like, or "".
func misspelled(word string) string {
	if len(word) > 2*len("unevaluatedProperties") {
		return ""
	}
	word = plainWord(word)
	meant, nearest := "", 3
	for i, known := range plainWords {
		most := min(2, len(known)/4, nearest-1) // "not" and "if" differ little from too many other words
		if n := spelling.Distance(word, known, most+1); n <= most {
			meant, nearest = validating[i], n
		}
	}
	return meant
}

// plainWord returns a word in lower case, without $, _ and -.
func plainWord(word string) string {
	return strings.NewReplacer("$", "", "_", "", "-", "").Replace(strings.ToLower(word))
}
