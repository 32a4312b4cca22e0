package chat

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A toolSchema is the JSON Schema of a tool's arguments.
type toolSchema struct {
	root  json.RawMessage
	known map[string][]string // types of arguments
	argumentSchema
}

// argumentSchema holds the keywords that tell a value's type.
type argumentSchema struct {
	Type       any                        `json:"type"`
	Enum       []any                      `json:"enum"`
	Const      *any                       `json:"const"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	AllOf      []json.RawMessage          `json:"allOf"`
	Ref        string                     `json:"$ref"`
	Nullable   any                        `json:"nullable"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	Additional json.RawMessage            `json:"additionalProperties"`
}

// has reports whether there is a tool of the name.
func (o *ReaderOptions) has(name string) bool {
	return o.some(func(known string) bool { return known == name })
}

// some reports whether the name of a tool meets a condition.
func (o *ReaderOptions) some(is func(name string) bool) bool {
	return slices.ContainsFunc(o.Schemas, func(data json.RawMessage) bool {
		var t struct{ Function struct{ Name string } }
		return json.Unmarshal(data, &t) == nil && is(t.Function.Name)
	})
}

// tool returns the schema of a tool's arguments, or nil.
func (o *ReaderOptions) tool(name string) *toolSchema {
	for _, data := range o.Schemas {
		var t struct{ Function struct{ Name string } }
		if json.Unmarshal(data, &t) != nil || t.Function.Name != name {
			continue
		}
		var p struct {
			Function struct{ Parameters json.RawMessage }
		}
		s := &toolSchema{known: map[string][]string{}}
		if json.Unmarshal(data, &p) != nil || json.Unmarshal(p.Function.Parameters, &s.argumentSchema) != nil {
			return nil
		}
		s.root = p.Function.Parameters
		return s
	}
	return nil
}

// types returns the JSON types of an argument, in the order of the schema. An unknown
// argument has none.
func (s *toolSchema) types(key string) []string {
	if s == nil {
		return nil
	}
	property, ok := s.Properties[key]
	if !ok {
		key, property = "", s.Additional
	}
	types, ok := s.known[key]
	if !ok {
		w := typeWalk{root: s.root, left: maxWalk}
		w.walk(property)
		types = w.types
		s.known[key] = types
	}
	return types
}

// Limits of a walk: bytes of schemas that it reads, steps of a reference, and types.
const (
	maxWalk  = 1 << 20
	maxSteps = 8
	maxTypes = 16
)

// A typeWalk collects the types of a schema.
type typeWalk struct {
	root  json.RawMessage
	left  int
	types []string
}

func (w *typeWalk) walk(data json.RawMessage) {
	var s argumentSchema
	if w.left -= len(data) + 64; w.left < 0 || json.Unmarshal(data, &s) != nil {
		return
	}
	before := len(w.types)
	switch t := s.Type.(type) {
	case string:
		w.add(t)
	case []any:
		for _, v := range t {
			if name, ok := v.(string); ok {
				w.add(name)
			}
		}
	}
	for _, list := range [][]json.RawMessage{s.AnyOf, s.OneOf, s.AllOf} {
		for _, sub := range list {
			w.walk(sub)
		}
	}
	if s.Ref != "" {
		w.walk(w.lookup(s.Ref))
	}
	if s.Nullable == true {
		w.add("null")
	}
	if len(w.types) > before {
		return
	}
	if s.Const != nil {
		s.Enum = append(s.Enum, *s.Const)
	}
	switch {
	case len(s.Enum) > 0:
		for _, v := range s.Enum {
			w.add(typeOf(v))
		}
	case s.Properties != nil:
		w.add("object")
	case s.Items != nil:
		w.add("array")
	}
}

func (w *typeWalk) add(name string) {
	if !slices.Contains(w.types, name) && len(w.types) < maxTypes {
		w.types = append(w.types, name)
	}
}

// typeOf returns the JSON type of a decoded value.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// lookup resolves a reference within a schema, or returns nil.
func (w *typeWalk) lookup(ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#/")
	steps := strings.Split(path, "/")
	if !ok || len(steps) > maxSteps {
		return nil
	}
	root := w.root
	for _, step := range steps {
		var o map[string]json.RawMessage
		if w.left -= len(root); w.left < 0 || json.Unmarshal(root, &o) != nil {
			return nil
		}
		root = o[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return root
}

// onlyText reports whether a value of these types is text as it stands.
func onlyText(types []string) bool {
	return !slices.ContainsFunc(types, func(t string) bool {
		return slices.Contains([]string{"integer", "number", "boolean", "null", "array", "object"}, t)
	})
}

// otherTypes returns the types without that of text; all others, if it was the only one.
func otherTypes(types []string) []string {
	if onlyText(types) {
		return []string{"number", "boolean", "null", "array", "object"}
	}
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "string" })
}

// convert returns the JSON of a value that is written as text: of the first type that
// fits, else a string.
func convert(text string, types []string) string {
	for _, t := range types {
		if v, ok := convertTo(strings.TrimSpace(text), t); ok {
			return v
		}
	}
	return jsonString(text)
}

func convertTo(text, kind string) (string, bool) {
	switch kind {
	case "integer", "number":
		return convertNumber(text, kind == "integer")
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "1":
			return "true", true
		case "false", "0":
			return "false", true
		}
	case "null":
		return "null", text == "null" || text == "None"
	case "array", "object":
		open := "["
		if kind == "object" {
			open = "{"
		}
		if !strings.HasPrefix(text, open) {
			return "", false
		}
		if json.Valid([]byte(text)) {
			return text, true
		}
		return pythonJSON(text)
	}
	return "", false
}

// convertNumber keeps the spelling of a JSON number. An integer may also be a whole
// number with a fraction or an exponent.
func convertNumber(text string, integer bool) (string, bool) {
	plain := isNumber(text) && !strings.ContainsAny(text, ".eE")
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case plain || err == nil && !integer && isNumber(text):
		return text, true
	case err != nil || math.IsInf(v, 0) || math.IsNaN(v) || integer && v != math.Trunc(v):
		return "", false
	case math.Abs(v) < 1<<53 && v == math.Trunc(v):
		return strconv.FormatInt(int64(v), 10), true
	}
	return strconv.FormatFloat(v, 'g', -1, 64), !integer
}

// isNumber reports whether a text is a JSON number.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text)) && strings.TrimSpace(text) == text
}

// jsonString returns a text as a JSON string.
func jsonString(text string) string { return `"` + escapeJSON(text) + `"` }

// escapeJSON escapes a text for a JSON string, byte by byte: pieces of a text become
// pieces of the string, wherever it is cut.
func escapeJSON(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ':
			b.WriteString(`\u00`)
			const hex = "0123456789abcdef"
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
