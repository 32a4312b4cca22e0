package grammar

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ParseSchema compiles a JSON Schema: draft 2020-12, and older drafts where they
// differ. The grammar matches the JSON values that are valid against the schema, with
// the properties of objects in the order of the schema. White space is one optional
// space after a colon or a comma, and nothing else. So it cannot run away, and models
// can use their usual style.
//
// A schema is never weakened: an unknown keyword, or one that cannot be enforced
// exactly together with the others, is an error that names it. Known formats are
// enforced; an unknown format is ignored, as JSON Schema permits.
func ParseSchema(schema []byte) (*Grammar, error) {
	root, err := readJSON(schema)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	w := newSchemaWriter(root)
	return w.finish(w.value(root, ""))
}

// AnyObject returns the grammar of all JSON objects.
func AnyObject() *Grammar {
	w := newSchemaWriter(nil)
	g, err := w.finish(w.freeObject())
	if err != nil {
		panic("bug: " + err.Error())
	}
	return g
}

// ParseRegex returns the grammar of the texts that match the whole pattern.
func ParseRegex(pattern string) (*Grammar, error) {
	b := &builder{}
	p, err := b.regex(pattern, plainText, true)
	if err != nil {
		return nil, err
	}
	root := b.rule("pattern")
	b.define(root, p)
	return b.finish(root)
}

// schemaWriter writes the network of a schema.
type schemaWriter struct {
	b       *builder
	root    any
	refs    map[string]int32 // rules of the schemas that $ref names
	chain   []string         // references on the path to the current value
	named   map[string]int32 // rules of this package: strings, any value
	checked map[*object]bool // schemas with checked keywords
	regexes map[string]*regexp.Regexp
	enums   map[*object]map[string]bool // keys of the values of each enum
	loose   bool                        // see valid
	format  CallFormat                  // of the call whose arguments are written
	mode    mode
	depth   int
	work    int // see spend
	err     error
}

func newSchemaWriter(root any) *schemaWriter {
	return &schemaWriter{b: &builder{}, root: root, refs: map[string]int32{}, named: map[string]int32{}, checked: map[*object]bool{},
		regexes: map[string]*regexp.Regexp{}, enums: map[*object]map[string]bool{}}
}

// maxWork limits the work of merging and comparing schemas. References that each refer
// to two others would otherwise be merged forever, and each constant may be compared
// with each alternative. A unit is about 0.1 µs.
const maxWork = 400_000

// spend counts work. It records an error and returns false when the limit is exceeded.
func (w *schemaWriter) spend(units int, path string) bool {
	if w.work += units; w.work > maxWork {
		w.fail(path, "merging and comparing the schemas of allOf, anyOf, oneOf, enum and $ref takes more than %d steps; use fewer or smaller schemas", maxWork)
	}
	return w.err == nil
}

func (w *schemaWriter) finish(p part) (*Grammar, error) {
	if w.err != nil {
		return nil, w.err
	}
	root := w.b.rule("schema")
	w.b.define(root, p)
	return w.b.finish(root)
}

// fail records the first error, with its location in the schema.
func (w *schemaWriter) fail(path, format string, args ...any) part {
	if w.err == nil {
		if path == "" {
			path = "/"
		}
		w.err = fmt.Errorf("schema at %s: %s", path, fmt.Sprintf(format, args...))
	}
	return w.b.nothing()
}

// Supported keywords, by the type that they apply to.
var (
	stringWords = []string{"minLength", "maxLength", "pattern", "format"}
	numberWords = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	arrayWords  = []string{"items", "prefixItems", "additionalItems", "minItems", "maxItems"}
	objectWords = []string{"properties", "required", "additionalProperties", "minProperties", "maxProperties"}
	otherWords  = []string{"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "nullable"}
	// annotations never affect validity.
	annotations = []string{"title", "description", "default", "examples", "example", "$schema", "$id", "id", "$comment", "$defs", "definitions",
		"deprecated", "readOnly", "writeOnly", "$anchor", "contentMediaType", "contentEncoding", "discriminator", "strict", "name"}
	// harmless are keywords that have no effect with these values.
	harmless = map[string]string{"uniqueItems": "false", "unevaluatedProperties": "true", "unevaluatedItems": "true"}
)

var knownWords = func() map[string]bool {
	known := map[string]bool{}
	for _, k := range slices.Concat(stringWords, numberWords, arrayWords, objectWords, otherWords, annotations) {
		known[k] = true
	}
	return known
}()

// instead suggests replacements for unsupported keywords.
var instead = map[string]string{
	"uniqueItems":           "remove it and remove duplicates from the result",
	"not":                   "describe the allowed values by type, enum or pattern",
	"if":                    "write anyOf of the two cases, or oneOf with a property of a different const in each",
	"patternProperties":     "list the properties, or set additionalProperties to a schema",
	"propertyNames":         "list the properties and set additionalProperties to false",
	"unevaluatedProperties": "set additionalProperties to false beside properties",
	"unevaluatedItems":      "set items to false beside prefixItems",
	"dependentRequired":     "write anyOf with the properties of each case",
	"dependencies":          "write anyOf with the properties of each case",
	"contains":              "describe all items by items or prefixItems",
	"$dynamicRef":           "write $ref",
	"$recursiveRef":         "write $ref",
}

// checkWords refuses unsupported keywords that affect validity.
func (w *schemaWriter) checkWords(o *object, path string) bool {
	if w.checked[o] {
		return w.err == nil
	}
	w.checked[o] = true
	for _, k := range o.keys {
		switch {
		case knownWords[k] || strings.HasPrefix(k, "x-") || harmless[k] != "" && harmless[k] == writeJSON(o.values[k]):
		case instead[k] != "":
			w.fail(path, "keyword %q is not supported; %s", k, instead[k])
		default:
			w.fail(path, "keyword %.40q is not supported; use one of: %s", k, strings.Join(slices.Concat(otherWords, stringWords, numberWords, arrayWords, objectWords), ", "))
		}
	}
	id, isText := o.values["$id"].(string)
	if isText && any(o) != w.root && !strings.HasPrefix(id, "#") {
		w.fail(path, "a nested $id changes the target of $ref; remove it")
	}
	if n, _ := o.get("nullable"); n == true && o.has("type") && !slices.Contains(w.types(o, path), "null") {
		w.fail(path, `nullable is not a JSON Schema keyword, so null is not valid here; write "type": [%s, "null"]`, strings.Trim(writeJSON(o.values["type"]), "[]"))
	}
	return w.err == nil
}

// value writes the values of a schema.
func (w *schemaWriter) value(schema any, path string) part {
	if w.depth++; w.depth > maxDepth {
		return w.fail(path, "schemas are nested deeper than %d", maxDepth)
	}
	defer func() { w.depth-- }()
	if w.err != nil || w.b.err != nil {
		return w.b.nothing()
	}
	switch s := schema.(type) {
	case bool:
		if s {
			return w.any()
		}
		return w.b.nothing()
	case *object:
		return w.object(s, path)
	}
	return w.fail(path, "expected an object, true or false, found %.40s", writeJSON(schema))
}

func (w *schemaWriter) object(o *object, path string) part {
	if !w.checkWords(o, path) {
		return w.b.nothing()
	}
	if o.has("enum", "const") {
		if w.mode == asArguments {
			return w.fail(path, "enum and const of all arguments together are not supported in the model's format of tool calls; put them into properties")
		}
		return w.constants(w.finite(o, path), path)
	}
	if ref, ok := o.get("$ref"); ok {
		return w.reference(o, ref, path)
	}
	if o.has("allOf") {
		return w.value(w.mergeAll(o, path), path)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if o.has(word) {
			return w.alternatives(o, word, path)
		}
	}
	return w.typed(o, path)
}

// constants writes values literally.
func (w *schemaWriter) constants(list []any, path string) part {
	var parts []part
	for _, v := range list {
		if w.b.err != nil {
			break
		}
		_, text := v.(string)
		parts = append(parts, w.kind(text, w.constant(v, path)))
	}
	return w.b.alt(parts...)
}

func (w *schemaWriter) constant(v any, path string) part {
	b := w.b
	var parts []part
	switch v := v.(type) {
	case json.Number:
		return w.text(plainNumber(v))
	case []any:
		for i, x := range v {
			if i > 0 {
				parts = append(parts, w.comma())
			}
			parts = append(parts, w.inside(x, path))
		}
		return w.enclosed("[", "]", b.seq(parts...))
	case *object:
		for i, k := range v.keys {
			if i > 0 {
				parts = append(parts, w.comma())
			}
			parts = append(parts, w.member(w.key(k, path), w.inside(v.values[k], path)))
		}
		return w.enclosed("{", "}", b.seq(parts...))
	case bool, nil:
		return w.word(v)
	case string:
		if w.plain() {
			return w.plainText(v, path)
		}
	}
	return w.text(writeJSON(v))
}

// inside writes a constant inside of another.
func (w *schemaWriter) inside(v any, path string) part {
	before := w.mode
	w.mode = before.inner()
	defer func() { w.mode = before }()
	return w.constant(v, path)
}

// text writes a text literally, with one state per byte.
func (w *schemaWriter) text(text string) part {
	b := w.b
	if len(b.states)+len(text) >= maxStates {
		b.fail(fmt.Errorf("%w: more than %d states", ErrTooLarge, maxStates))
		return b.nothing()
	}
	p := b.empty()
	for i := range len(text) {
		to := b.state()
		b.states[p.out].edges = append(b.states[p.out].edges, edge{text[i], text[i], to})
		p.out = to
	}
	return p
}

// plainNumber formats a constant as in the schema, but integers without point and
// exponent, so that every reader decodes them as integers.
func plainNumber(n json.Number) string {
	if text := numberText(n); !strings.ContainsAny(text, ".eE") && text != "" {
		return text
	}
	return n.String()
}

var typeNames = []string{"object", "array", "string", "number", "boolean", "null"}

// types returns the types that a schema allows; without the keyword, all.
func (w *schemaWriter) types(o *object, path string) []string {
	t, ok := o.get("type")
	if !ok {
		return typeNames
	}
	list, isList := t.([]any)
	if !isList {
		list = []any{t}
	}
	var out []string
	if !w.spend(len(list)/4, path) {
		return nil
	}
	for _, e := range list {
		name, _ := e.(string)
		if !slices.Contains(typeNames, name) && name != "integer" {
			w.fail(path+"/type", "type %s is unknown; use one of: %s, integer", writeJSON(e), strings.Join(typeNames, ", "))
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// typed writes a schema by its types.
func (w *schemaWriter) typed(o *object, path string) part {
	var parts []part
	for _, t := range w.typesIn(o, path) {
		add := func(p part) { parts = append(parts, w.kind(t == "string", p)) }
		switch t {
		case "object":
			add(w.properties(o, path))
		case "array":
			add(w.array(o, path))
		case "string":
			add(w.string(o, path))
		case "number", "integer":
			add(w.number(o, t == "integer", path))
		case "boolean":
			add(w.word(true))
			add(w.word(false))
		case "null":
			add(w.word(nil))
		}
	}
	return w.b.alt(parts...)
}

// alternatives writes anyOf, and oneOf if no value matches two of its schemas.
func (w *schemaWriter) alternatives(o *object, word, path string) part {
	subs, ok := o.values[word].([]any)
	if !ok || len(subs) == 0 {
		return w.fail(path+"/"+word, "expected a list of schemas")
	}
	rest := o.clone(append([]string{word}, annotations...)...)
	at := func(i int) string { return fmt.Sprintf("%s/%s/%d", path, word, i) }
	if len(rest.keys) > 0 {
		joined := make([]any, len(subs))
		for i, sub := range subs {
			joined[i] = w.merge(rest, sub, at(i))
		}
		subs = joined
	}
	if word == "oneOf" {
		subs = w.exclusive(subs, path+"/oneOf")
	}
	var parts []part
	for i, sub := range subs {
		if w.err != nil || w.b.err != nil {
			break
		}
		parts = append(parts, w.value(sub, at(i)))
	}
	return w.b.alt(parts...)
}
