package grammar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SchemaOptions say how the JSON of a schema is written.
type SchemaOptions struct {
	// Compact allows no blanks between the parts of a value. Otherwise one
	// blank, or a line end with an indent, may stand there.
	Compact bool
}

// ParseSchema reads a JSON schema (draft 2020-12 and what is common of older
// ones). The texts are values that meet it, with the properties of objects in
// the order of the schema. Keywords that change what is valid and are not
// known here are an error, never ignored; format is a hint where its name is
// not known.
func ParseSchema(schema []byte, opt SchemaOptions) (*Grammar, error) {
	root, err := readJSON(schema)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	w := newSchemaWriter(root, opt)
	return w.finish(w.value(root, ""))
}

// AnyObject gives the grammar of all JSON objects.
func AnyObject(opt SchemaOptions) *Grammar {
	w := newSchemaWriter(nil, opt)
	g, err := w.finish(w.freeObject())
	if err != nil {
		panic("bug: " + err.Error())
	}
	return g
}

// ParseRegex gives the grammar of the texts that a pattern matches as a whole.
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
	b      *builder
	root   any
	opt    SchemaOptions
	refs   map[string]int32 // rules of the schemas that $ref names
	named  map[string]int32 // rules of this package: white space, strings, any value
	depth  int
	joined int // keys that merge has gone through
	err    error
}

func newSchemaWriter(root any, opt SchemaOptions) *schemaWriter {
	return &schemaWriter{b: &builder{}, root: root, opt: opt, refs: map[string]int32{}, named: map[string]int32{}}
}

func (w *schemaWriter) finish(p part) (*Grammar, error) {
	if w.err != nil {
		return nil, w.err
	}
	root := w.b.rule("schema")
	w.b.define(root, p)
	return w.b.finish(root)
}

// fail records the first error, with the place in the schema.
func (w *schemaWriter) fail(path, format string, args ...any) part {
	if w.err == nil {
		if path == "" {
			path = "/"
		}
		w.err = fmt.Errorf("schema at %s: %s", path, fmt.Sprintf(format, args...))
	}
	return w.b.nothing()
}

// keywords are those that are written, by what they apply to.
var (
	stringWords = []string{"minLength", "maxLength", "pattern", "format"}
	numberWords = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	arrayWords  = []string{"items", "prefixItems", "additionalItems", "minItems", "maxItems"}
	objectWords = []string{"properties", "required", "additionalProperties", "minProperties", "maxProperties"}
	otherWords  = []string{"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "nullable"}
	// annotations never change what is valid.
	annotations = []string{"title", "description", "default", "examples", "example", "$schema", "$id", "id", "$comment", "$defs", "definitions",
		"deprecated", "readOnly", "writeOnly", "$anchor", "contentMediaType", "contentEncoding", "discriminator", "strict", "name"}
	// harmless are keywords that allow everything with these values.
	harmless = map[string]string{"uniqueItems": "false", "unevaluatedProperties": "true", "unevaluatedItems": "true"}
)

func (w *schemaWriter) checkWords(o *object, path string) bool {
	known := slices.Concat(stringWords, numberWords, arrayWords, objectWords, otherWords, annotations)
	for _, k := range o.keys {
		if slices.Contains(known, k) || strings.HasPrefix(k, "x-") || harmless[k] != "" && harmless[k] == writeJSON(o.values[k]) {
			continue
		}
		w.fail(path, "keyword %q is not supported; supported are %s", k, strings.Join(slices.Concat(otherWords, stringWords, numberWords, arrayWords, objectWords), ", "))
		return false
	}
	return true
}

// value writes the values that meet a schema.
func (w *schemaWriter) value(schema any, path string) part {
	if w.depth++; w.depth > maxDepth {
		return w.fail(path, "schemas nest deeper than %d", maxDepth)
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
	return w.fail(path, "expected an object, true or false, have %.40s", writeJSON(schema))
}

func (w *schemaWriter) object(o *object, path string) part {
	if !w.checkWords(o, path) {
		return w.b.nothing()
	}
	if ref, ok := o.get("$ref"); ok {
		return w.reference(o, ref, path)
	}
	if _, ok := o.get("allOf"); ok {
		return w.value(w.mergeAll(o, path), path)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list, ok := o.get(word); ok {
			return w.alternatives(o, word, list, path)
		}
	}
	if c, ok := o.get("const"); ok {
		return w.constants([]any{c}, o, path)
	}
	if e, ok := o.get("enum"); ok {
		list, isList := e.([]any)
		if !isList || len(list) == 0 {
			return w.fail(path+"/enum", "expected a list of values")
		}
		return w.constants(list, o, path)
	}
	return w.typed(o, path)
}

// constants writes values literally: those of the list that the rest of the
// schema's types allow.
func (w *schemaWriter) constants(list []any, o *object, path string) part {
	types := w.types(o, path)
	var parts []part
	for _, v := range list {
		if slices.ContainsFunc(types, func(t string) bool { return hasType(v, t) }) {
			parts = append(parts, w.b.literal(writeJSON(v)))
		}
	}
	return w.b.alt(parts...)
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
		return name == "number" || name == "integer" && !strings.ContainsAny(v.String(), ".eE")
	}
	return false
}

var typeNames = []string{"object", "array", "string", "number", "boolean", "null"}

// types lists the types that a schema allows; without the keyword, all.
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
	for _, e := range list {
		name, _ := e.(string)
		if !slices.Contains(typeNames, name) && name != "integer" {
			w.fail(path+"/type", "type %s is not known; there are %s, integer", writeJSON(e), strings.Join(typeNames, ", "))
		}
		out = append(out, name)
	}
	if n, _ := o.get("nullable"); n == true && !slices.Contains(out, "null") {
		out = append(out, "null")
	}
	return out
}

// typed writes a schema by its types.
func (w *schemaWriter) typed(o *object, path string) part {
	var parts []part
	for _, t := range w.types(o, path) {
		switch t {
		case "object":
			parts = append(parts, w.properties(o, path))
		case "array":
			parts = append(parts, w.array(o, path))
		case "string":
			parts = append(parts, w.string(o, path))
		case "number", "integer":
			parts = append(parts, w.number(o, t == "integer", path))
		case "boolean":
			parts = append(parts, w.b.literal("true"), w.b.literal("false"))
		case "null":
			parts = append(parts, w.b.literal("null"))
		}
	}
	return w.b.alt(parts...)
}

// alternatives writes anyOf and oneOf alike: of the alternatives that hold at
// once, the text is of one.
func (w *schemaWriter) alternatives(o *object, word string, list any, path string) part {
	subs, ok := list.([]any)
	if !ok || len(subs) == 0 {
		return w.fail(path+"/"+word, "expected a list of schemas")
	}
	rest := o.clone(append([]string{word}, annotations...)...)
	var parts []part
	for i, sub := range subs {
		at := fmt.Sprintf("%s/%s/%d", path, word, i)
		if len(rest.keys) > 0 {
			sub = w.merge(rest, sub, at)
		}
		parts = append(parts, w.value(sub, at))
	}
	return w.b.alt(parts...)
}
