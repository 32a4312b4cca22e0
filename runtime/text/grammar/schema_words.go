package grammar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// keywords are the keywords that affect validity, with the types of their values.
var keywords = map[string]valueType{
	"minLength": aCount, "maxLength": aCount, "pattern": aText, "format": aText,
	"minimum": aNumber, "maximum": aNumber, "exclusiveMinimum": aLimit, "exclusiveMaximum": aLimit, "multipleOf": aStep,
	"items": itemSchemas, "prefixItems": tuple, "additionalItems": aSchema, "minItems": aCount, "maxItems": aCount, "uniqueItems": aFlag,
	"contains": aSchema, "minContains": aCount, "maxContains": aCount,
	"properties": byName, "patternProperties": byName, "additionalProperties": aSchema, "propertyNames": aSchema, "required": names,
	"minProperties": aCount, "maxProperties": aCount,
	"type": aType, "enum": valueList, "const": anyValue, "nullable": aFlag, "$ref": aText, "$dynamicRef": aText,
	"anyOf": schemaList, "oneOf": schemaList, "allOf": schemaList, "not": aSchema, "if": aSchema, "then": aSchema, "else": aSchema,
	"dependentRequired": namesByName, "dependentSchemas": byName, "dependencies": eitherByName,
	"unevaluatedProperties": aSchema, "unevaluatedItems": aSchema,
}

// validating are the keywords in order, plainWords the same as plainWord returns them.
var (
	validating = slices.Sorted(maps.Keys(keywords))
	plainWords = func() (list []string) {
		for _, word := range validating {
			list = append(list, plainWord(word))
		}
		return list
	}()
)

// Keywords that apply to values of one type.
var (
	arrayWords  = []string{"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"}
	objectWords = []string{"properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties", "maxProperties"}
)

// annotations are the keywords that never affect validity. All other words are annotations
// too; these do not look like misspelled keywords.
var annotations = func() map[string]bool {
	known := map[string]bool{}
	for _, word := range []string{"title", "description", "default", "examples", "example", "$schema", "$id", "id", "$comment", "$defs", "definitions", "deprecated", "readOnly",
		"writeOnly", "$anchor", "$dynamicAnchor", "$vocabulary", "contentMediaType", "contentEncoding", "contentSchema", "discriminator", "strict", "name"} {
		known[word] = true
	}
	return known
}()

var typeNames = []string{"object", "array", "string", "number", "boolean", "null"}

// types returns the types that a schema allows.
func (w *schemaWriter) types(o *object, path string) []string {
	t := o.values["type"]
	list, isList := t.([]any)
	if !isList {
		list = []any{t}
	}
	var out []string
	if !w.spend(len(list)/4, path) {
		return nil
	}
	for _, e := range list {
		name := e.(string)
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// typeLeaf returns the leaf of a schema's types.
func (w *schemaWriter) typeLeaf(o *object, path string) *expr {
	if !o.has("type") {
		return w.exprs.any
	}
	var set shapeSet
	free := []*shape{{typed: true}}
	for _, name := range w.types(o, path) {
		switch name {
		case "null":
			set[kindNull] = free
		case "boolean":
			set[kindTrue], set[kindFalse] = free, free
		case "number":
			set[kindNumber] = free
		case "integer":
			if set[kindNumber] == nil {
				set[kindNumber] = []*shape{{typed: true, number: &numberShape{whole: 1, path: path}}}
			}
		case "string":
			set[kindString] = free
		case "array":
			set[kindArray] = free
		case "object":
			set[kindObject] = free
		}
	}
	return w.leaf(set, path)
}

// valuesLeaf returns the leaf of a schema's enum or const.
func (w *schemaWriter) valuesLeaf(values []any, path string) *expr {
	if !w.spend(weight(values)/8, path) {
		return w.exprs.none
	}
	var set shapeSet
	for _, v := range united(nil, values) {
		k := kindOf(v)
		if set[k] == nil {
			set[k] = []*shape{{typed: true}}
		}
		if k >= kindNumber {
			set[k][0].values = append(set[k][0].values, v)
		}
	}
	return w.leaf(set, path)
}

// read returns the expression of a schema.
func (w *schemaWriter) read(o *object, path string) *expr {
	if !w.checkWords(o, path) || !w.spend(16, path) {
		return w.exprs.none
	}
	list := []*expr{w.asserted(o, path), w.applied(o, path)}
	for _, word := range []string{"unevaluatedProperties", "unevaluatedItems"} {
		if o.has(word) {
			list = append(list, w.unevaluated(o, word, path))
		}
	}
	if o.values["nullable"] == true {
		return w.some(w.all(list...), w.null(path))
	}
	return w.all(list...)
}

// null returns the leaf of null.
func (w *schemaWriter) null(path string) *expr {
	var set shapeSet
	set[kindNull] = []*shape{{typed: true}}
	return w.leaf(set, path)
}

// asserted returns the node of the keywords that describe values directly.
func (w *schemaWriter) asserted(o *object, path string) *expr {
	list := []*expr{w.typeLeaf(o, path)}
	if v, ok := o.get("enum"); ok {
		list = append(list, w.valuesLeaf(v.([]any), path))
	}
	if v, ok := o.get("const"); ok {
		list = append(list, w.valuesLeaf([]any{v}, path))
	}
	return w.all(append(list, w.numberLeaf(o, path), w.stringLeaf(o, path), w.arrayLeaf(o, path), w.objectLeaf(o, path))...)
}

// applied returns the node of the keywords that apply schemas to the value itself.
func (w *schemaWriter) applied(o *object, path string) *expr {
	var list []*expr
	for _, word := range []string{"$ref", "$dynamicRef"} {
		if o.has(word) {
			list = append(list, w.reference(o, word, path))
		}
	}
	list = append(list, w.each(o, "allOf", path)...)
	if o.has("anyOf") {
		list = append(list, w.some(w.each(o, "anyOf", path)...))
	}
	if o.has("oneOf") {
		list = append(list, w.exactlyOne(w.each(o, "oneOf", path), path+"/oneOf"))
	}
	if v, ok := o.get("not"); ok {
		list = append(list, w.not(w.node(v, path+"/not")))
	}
	if v, ok := o.get("if"); ok {
		test := w.node(v, path+"/if")
		list = append(list, w.some(w.all(test, w.branch(o, "then", path)), w.all(w.not(test), w.branch(o, "else", path))))
	}
	for _, d := range w.dependent(o, path) {
		list = append(list, w.some(w.without(d.name, path), d.value))
	}
	return w.all(list...)
}

// each returns the nodes of a list of schemas.
func (w *schemaWriter) each(o *object, word, path string) []*expr {
	v, ok := o.get(word)
	if !ok {
		return nil
	}
	subs := v.([]any)
	list := make([]*expr, len(subs))
	for i, sub := range subs {
		list[i] = w.node(sub, fmt.Sprintf("%s/%s/%d", path, word, i))
	}
	return list
}

// branch returns the node of then or else.
func (w *schemaWriter) branch(o *object, word, path string) *expr {
	if v, ok := o.get(word); ok {
		return w.node(v, path+"/"+word)
	}
	return w.exprs.any
}

// A dependency is what holds for an object with a name.
type dependency struct {
	name   string
	value  *expr
	schema bool // it is a schema, which evaluates members
}

// dependent returns the dependencies of a schema.
func (w *schemaWriter) dependent(o *object, path string) []dependency {
	var list []dependency
	for _, word := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		given := schemas(o, word)
		for _, name := range given.keys {
			at := path + "/" + word + "/" + name
			v := given.values[name]
			if _, isList := v.([]any); isList {
				list = append(list, dependency{name, w.requires(w.names(v, at), at), false})
			} else {
				list = append(list, dependency{name, w.node(v, at), true})
			}
		}
	}
	return list
}

// requires returns the node of all values except objects that lack one of the names.
func (w *schemaWriter) requires(names []string, path string) *expr {
	if len(names) == 0 {
		return w.exprs.any
	}
	return w.leaf(restricted(kindObject, &shape{object: &objectShape{required: names, hi: -1, path: path}}), path)
}

// without returns the node of all values except objects with a name.
func (w *schemaWriter) without(name, path string) *expr {
	return w.leaf(restricted(kindObject, &shape{object: &objectShape{fields: []*fields{w.absent(name, path)}, hi: -1, path: path}}), path)
}

// with returns the node of the objects with a name.
func (w *schemaWriter) with(name, path string) *expr {
	var set shapeSet
	set[kindObject] = []*shape{{object: &objectShape{required: []string{name}, hi: -1, path: path}}}
	return w.leaf(set, path)
}

// exactlyOne returns the node of the values that exactly one of the kids contains.
func (w *schemaWriter) exactlyOne(kids []*expr, path string) *expr {
	var list []*expr
	for i, k := range kids {
		one := []*expr{k}
		for j, other := range kids {
			if j != i && !w.disjoint(k, other, path) {
				one = append(one, w.not(other))
			}
			if !w.spend(1, path) {
				return w.exprs.none
			}
		}
		list = append(list, w.all(one...))
	}
	return w.some(list...)
}

// drafts reports whether the schema may belong to one of these drafts: it names one of
// them, or none.
func (w *schemaWriter) drafts(names ...string) bool {
	root, _ := w.root.(*object)
	if root == nil || !root.has("$schema") {
		return true
	}
	uri, _ := root.values["$schema"].(string)
	uri = uri[:min(len(uri), 256)]
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(uri, name) })
}
