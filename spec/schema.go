package spec

import (
	_ "embed"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/ir/tensor"
)

// The sources of the structs. Their field comments are the descriptions in the schema.
//
//go:embed spec.go
var specSource string

//go:embed network.go
var networkSource string

//go:embed engine.go
var engineSource string

//go:embed medusa.go
var medusaSource string

//go:embed draft.go
var draftSource string

// schemaNode is a JSON Schema or a part of one.
type schemaNode = map[string]any

// Schema returns the JSON Schema (2020-12) of a model spec, for editors. Load
// rejects everything that the schema rejects, and also checks the model's files.
func Schema() []byte {
	s := schemer{docs: fieldComments(specSource, networkSource, engineSource, medusaSource, draftSource), lib: library()}
	root := s.structure(reflect.ValueOf(Spec{Version: Version}), false)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "iflowc model spec"
	root["properties"].(schemaNode)["iflow"].(schemaNode)["enum"] = []any{Version, nil}
	network := s.structure(reflect.ValueOf(newNetwork(nil)), true)
	s.params(network["properties"].(schemaNode), "")
	network["description"] = s.docs["Spec.Network"]
	root["properties"].(schemaNode)["network_structure"] = network
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("bug: the schema is not valid JSON: " + err.Error())
	}
	return append(out, '\n')
}

// A schemer generates schemas of Go types by the rules of the decoder.
type schemer struct {
	docs map[string]string // field comments by Type.Field
	lib  *expand.Library
}

// structure returns the schema of a struct's keys; v holds their defaults.
// expressions reports whether a value may be an expression over config.json.
func (s schemer) structure(v reflect.Value, expressions bool) schemaNode {
	t, properties := v.Type(), schemaNode{}
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		p := s.value(f.Type, f.Tag.Get("words"), key)
		if f.Type.Kind() == reflect.Struct {
			p = s.structure(v.Field(i), true)
		}
		if expressions && len(p) > 0 {
			p = expressible(p)
		}
		if doc := s.docs[t.Name()+"."+f.Name]; doc != "" {
			p["description"] = doc
		}
		switch d := v.Field(i); d.Kind() {
		case reflect.String, reflect.Int, reflect.Float64, reflect.Bool:
			if !d.IsZero() {
				p["default"] = d.Interface()
			}
		}
		properties[key] = p
	}
	return schemaNode{"type": "object", "properties": properties, "additionalProperties": false}
}

// params adds the keys of a section of network_structure, or of the top.
func (s schemer) params(properties schemaNode, section string) {
	for _, name := range keysIn(s.lib, section) {
		key := join(section, name)
		if inner := sectionNamed(s.lib, key); inner != nil {
			p := schemaNode{"type": []any{"object", "null"}, "properties": schemaNode{}, "additionalProperties": false}
			s.params(p["properties"].(schemaNode), key)
			p = expressible(p)
			p["description"] = inner.Doc
			properties[name] = p
		} else if p, err := s.lib.Key(key); p != nil && err == nil { // no field of Network
			n := s.param(p, p.Doc)
			if v := reflect.ValueOf(p.Default); v.IsValid() && v.Kind() != reflect.Slice && !v.IsZero() {
				n["default"] = p.Default
			}
			properties[name] = n
		}
	}
	if section == "" {
		return
	}
	for _, name := range narrowed(s.lib, section) {
		if p, err := s.lib.Key(name); p != nil && err == nil {
			properties[name] = s.param(p, NarrowedDoc)
		}
	}
}

// NarrowedDoc describes a key of the top in a section.
const NarrowedDoc = "as at the top, for the modules of this section"

// param returns the schema of a parameter.
func (s schemer) param(p *expand.Parameter, doc string) schemaNode {
	typ, words := paramTypes[p.Kind], strings.Join(p.Words, "|")
	value := s.value(typ, words, p.Name)
	list := s.value(reflect.SliceOf(typ), words, p.Name)
	switch {
	case p.List:
		value = list
	case p.Layered:
		value = schemaNode{"anyOf": []any{list, value}}
	}
	value = expressible(value)
	value["description"] = doc
	return value
}

// expressible returns the schema of a value in whose place an expression over config.json may be.
func expressible(p schemaNode) schemaNode {
	return schemaNode{"anyOf": []any{p, schemaNode{"type": "string", "pattern": exprForm}}}
}

// value returns the schema of one key's value. It accepts null, which equals an
// absent key.
func (s schemer) value(t reflect.Type, words, key string) schemaNode {
	switch reflect.Zero(t).Interface().(type) {
	case tensor.DType:
		legal := slices.Concat(SizeNames(), TypeNames())
		if strings.Contains(key, "kv_") {
			legal = typeNames(KVType)
		}
		return schemaNode{"anyOf": []any{
			schemaNode{"enum": legal},
			schemaNode{"type": []any{"string", "null"}, "pattern": "^[A-Za-z][A-Za-z0-9_]*$"}, // aliases, in any case
		}}
	case OrderedMap:
		return schemaNode{"type": []any{"object", "null"}, "additionalProperties": schemaNode{"type": []any{"string", "number", "boolean", "null"}}}
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.structure(reflect.Zero(t), true)
	case reflect.Pointer:
		p := s.value(t.Elem(), words, key)
		if t.Elem().Kind() == reflect.Struct {
			p["type"] = []any{"object", "null"}
		}
		return p
	case reflect.Slice:
		return schemaNode{"type": []any{"array", "null"}, "items": scalarSchema(t.Elem(), words, key, false)}
	case reflect.Map:
		return schemaNode{"type": []any{"object", "null"}}
	case reflect.Interface:
		return schemaNode{}
	}
	return scalarSchema(t, words, key, true)
}

// scalarSchema returns the schema of a string, number or boolean.
func scalarSchema(t reflect.Type, words, key string, null bool) schemaNode {
	name := map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer", reflect.Float64: "number", reflect.Bool: "boolean"}[t.Kind()]
	if name == "" {
		panic("bug: no schema for " + t.String())
	}
	var types any = name
	if null {
		types = []any{name, "null"}
	}
	if words == "" {
		return schemaNode{"type": types}
	}
	spellings := wordSpellings(strings.Split(words, "|"))
	enum := make([]any, 0, len(spellings)+2)
	for _, w := range spellings {
		enum = append(enum, w)
	}
	enum = append(enum, "")
	if null {
		enum = append(enum, nil)
	}
	return schemaNode{"anyOf": []any{schemaNode{"enum": enum}, schemaNode{"type": "string", "pattern": anyCase(spellings)}}}
}

// wordSpellings returns the words, followed by their accepted aliases.
func wordSpellings(words []string) []string {
	out := slices.Clone(words)
	var others []string
	for _, p := range spellings()["words"] {
		if slices.Contains(words, p.to) && !slices.Contains(words, p.from) && p.from != "0" && p.from != "1" {
			others = append(others, p.from)
		}
	}
	slices.Sort(others)
	return append(out, others...)
}

// anyCase returns a case-insensitive pattern of the words; JSON Schema has no
// flag for that.
func anyCase(words []string) string {
	var b strings.Builder
	b.WriteString("^(")
	for i, w := range words {
		if i > 0 {
			b.WriteByte('|')
		}
		for _, c := range w {
			switch {
			case unicode.IsLetter(c):
				b.WriteString("[" + string(c) + string(unicode.ToUpper(c)) + "]")
			case c == '.':
				b.WriteString(`\.`)
			default:
				b.WriteRune(c)
			}
		}
	}
	b.WriteString(")$")
	return b.String()
}

// fieldComments returns the comments of struct fields in Go source, by Type.Field.
func fieldComments(sources ...string) map[string]string {
	out := map[string]string{}
	for _, src := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments)
		if err != nil {
			panic("bug: the embedded source is not valid Go: " + err.Error())
		}
		ast.Inspect(file, func(n ast.Node) bool {
			decl, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			st, ok := decl.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					out[decl.Name.Name+"."+name.Name] = strings.TrimSpace(f.Comment.Text())
				}
			}
			return false
		})
	}
	return out
}
