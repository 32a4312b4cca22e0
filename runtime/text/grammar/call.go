package grammar

import "encoding/json"

// A Tool is a function that the model may call: its name and the JSON Schema of its
// arguments (nil: any object).
type Tool struct {
	Name       string
	Parameters json.RawMessage
}

// A CallFormat is the syntax of a tool call: the text before and after the JSON, and
// the JSON keys of the name and the arguments. If Name is empty, the name is written as
// text before the arguments, followed by Between.
type CallFormat struct {
	Open, Shut      string
	Name, Arguments string
	Between         string
}

// parseCall returns the grammar of a call of one of the tools.
func parseCall(format CallFormat, tools []Tool) (*Grammar, error) {
	w := newSchemaWriter(nil)
	var calls []part
	for _, t := range tools {
		arguments, err := w.arguments(t)
		if err != nil {
			return nil, err
		}
		b := w.b
		if format.Name == "" {
			calls = append(calls, b.seq(b.literal(t.Name+format.Between), arguments))
			continue
		}
		name := w.member(b.literal(writeJSON(format.Name)), b.literal(writeJSON(t.Name)))
		rest := w.member(b.literal(writeJSON(format.Arguments)), arguments)
		calls = append(calls, w.enclosed("{", "}", b.seq(name, w.comma(), rest)))
	}
	b := w.b
	return w.finish(b.seq(b.literal(format.Open), b.alt(calls...), b.literal(format.Shut)))
}

// arguments writes the arguments of a tool. Its schema is a separate document, in which
// $ref is resolved.
func (w *schemaWriter) arguments(t Tool) (part, error) {
	if len(t.Parameters) == 0 || string(t.Parameters) == "null" {
		return w.freeObject(), nil
	}
	root, err := readJSON(t.Parameters)
	if err != nil {
		return part{}, err
	}
	if o, ok := root.(*object); ok && !o.has("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const") {
		o.set("type", "object")
	}
	w.root, w.refs = root, map[string]int32{}
	p := w.value(root, "/tools/"+t.Name)
	return p, w.err
}
