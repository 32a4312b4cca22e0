package grammar

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Tool is a function that the model may call: its name and the JSON Schema of its
// arguments (nil: there are none). Without Strict, a schema that cannot be enforced
// restricts only the names of the arguments; see Warnings.
type Tool struct {
	Name       string
	Parameters json.RawMessage
	Strict     bool
}

// A CallFormat is the syntax of a tool call. Without Name, the function's name is text
// between Open and Between.
type CallFormat struct {
	Open, Shut      string    // text before and after the call
	Name, Arguments string    // keys of the name and the arguments, if the call is a JSON object
	Numbered        bool      // a colon and a number follow the name
	Between, End    string    // text before and after the arguments
	Python          bool      // the arguments are keyword arguments with Python literals
	Quote           string    // with Python, if set: encloses strings, which have no escapes; a colon follows a name, and keys have no quotes
	Argument        [3]string // if set: texts before an argument's name, between its name and its value, and after its value
	Kinds           [2]string // if set: texts before a value that is text, and before another
}

// Marked reports whether a token's text is part of the format's own text.
func (f CallFormat) Marked(token string) bool {
	for _, text := range append([]string{f.Open, f.Shut, f.Between, f.End, f.Quote}, f.Argument[:]...) {
		if token != "" && strings.Contains(text, token) {
			return true
		}
	}
	return false
}

// ownArguments reports whether the arguments are not a JSON object.
func (f CallFormat) ownArguments() bool { return f.Argument[0] != "" || f.Python }

// parseCall returns the grammar of a call of one of the tools. If there is a schema of
// an answer, its JSON values are also part of it.
func parseCall(format CallFormat, tools []Tool, answer []byte) (*Grammar, error) {
	w := newSchemaWriter(nil)
	b := w.b
	var calls, answers []part
	other := int32(-1)
	w.most -= len(tools) * workOfTool
	if answer != nil {
		root, err := readJSON(answer)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		w.open(root)
		other = b.rule("answer")
		b.define(other, w.value(w.node(root, "")))
	}
	w.format, w.closing = format, true
	rules := make([]int32, len(tools))
	for i, t := range tools {
		w.most += workOfTool
		if w.err != nil {
			return nil, w.err
		}
		if rules[i] = w.arguments(t); w.err != nil {
			return nil, w.err
		}
	}
	w.callable(tools, rules)
	if other >= 0 {
		answers = append(answers, b.call(other))
	}
	for i, t := range tools {
		arguments := b.call(rules[i])
		if format.Name == "" {
			calls = append(calls, b.seq(b.literal(t.Name), w.counter(format.Numbered), b.literal(format.Between), arguments, b.literal(format.End)))
			continue
		}
		name := w.member(b.literal(writeJSON(format.Name)), b.literal(writeJSON(t.Name)))
		rest := w.member(b.literal(writeJSON(format.Arguments)), arguments)
		calls = append(calls, w.enclosed("{", "}", b.seq(name, w.comma(), rest)))
	}
	return w.finish(b.alt(append(answers, b.seq(b.literal(format.Open), b.alt(calls...), b.literal(format.Shut)))...))
}

// counter writes a colon and a number below 1000, if wanted.
func (w *schemaWriter) counter(wanted bool) part {
	b := w.b
	if !wanted {
		return b.empty()
	}
	digits := b.repeat(0, 2, func() part { return b.bytes('0', '9') })
	return b.seq(b.literal(":"), b.alt(b.literal("0"), b.seq(b.bytes('1', '9'), digits)))
}
