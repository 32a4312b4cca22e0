package grammar

import (
	"regexp"
	"slices"
	"strings"
)

// A mode is how a schemaWriter writes a value.
type mode int

const (
	asJSON      mode = iota
	asObject         // an object as the arguments of a call
	asArguments      // the same, but each argument with its name
	asText           // a string as it is, other values as JSON
	asPython         // as a Python literal
)

// top reports whether the value is the arguments of a call.
func (m mode) top() bool { return m == asObject || m == asArguments }

// in writes a nested value in another mode.
func (w *schemaWriter) in(m mode, n *expr) part {
	before := w.mode
	w.mode = m
	defer func() { w.mode = before }()
	return w.value(n)
}

// inner returns the mode of a value inside of another.
func (m mode) inner() mode {
	if m == asPython {
		return m
	}
	return asJSON
}

// named distinguishes rules of the same schema in several modes.
func (m mode) named(name string) string { return string(rune('0'+m)) + name }

// identifiers are the names of arguments that a call in Python can have, of
// identifierRunes.
var (
	identifiers     = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	identifierRunes = []runeRange{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
)

// spelled distinguishes rules for exact values.
func (w *schemaWriter) spelled(name string) string {
	if w.exact {
		return "exact " + name
	}
	return name
}

// argument writes an argument of a call.
func (w *schemaWriter) argument(name string, value *expr, path string) part {
	f := w.format
	switch {
	case f.Python && identifiers.MatchString(name):
		assign := "="
		if f.Quote != "" {
			assign = ":"
		}
		return w.b.seq(w.b.literal(name+assign), w.in(asPython, value))
	case !w.writable(name):
		return w.fail(path, "%.40q cannot be written in the model's format of tool calls; use letters, digits and _", name)
	}
	return w.b.seq(w.b.literal(f.Argument[0]+name+f.Argument[1]), w.in(asText, value), w.b.literal(f.Argument[2]))
}

// writable reports whether an argument of a call can have a name.
func (w *schemaWriter) writable(name string) bool {
	switch f := w.format; {
	case f.Python:
		return identifiers.MatchString(name)
	case f.Argument[0] != "":
		return !strings.ContainsAny(name, "<>\"\r\n")
	}
	return true
}

// inMode returns the values that are written in the current mode. A text whose schema
// has no type is a string, unless the schema describes an object or an array.
func (w *schemaWriter) inMode(set shapeSet) shapeSet {
	switch {
	case w.mode.top():
		return shapeSet{kindObject: set[kindObject]}
	case w.mode == asText:
		keep := kindString
		for _, k := range []kind{kindArray, kindObject} {
			if slices.ContainsFunc(set[k], func(s *shape) bool { return !s.typed && !s.free() }) {
				keep = k
			}
		}
		var out shapeSet
		for k, list := range set {
			out[k] = slices.DeleteFunc(slices.Clone(list), func(s *shape) bool { return !s.typed && kind(k) != keep })
		}
		return out
	}
	return set
}

// word writes true, false or null.
func (w *schemaWriter) word(v any) part {
	text := writeJSON(v)
	if w.mode != asPython {
		return w.b.literal(text)
	}
	python := map[string]string{"true": "True", "false": "False", "null": "None"}[text]
	return w.b.alt(w.b.literal(python), w.b.literal(text))
}

// plain reports whether strings are written without escapes.
func (w *schemaWriter) plain() bool {
	return w.mode == asText || w.bareKeys()
}

// endOfText returns the text that ends a string without escapes, which it cannot contain.
func (w *schemaWriter) endOfText() string {
	if w.mode == asPython {
		return w.format.Quote
	}
	return strings.TrimSpace(w.format.Argument[2])
}

// kind writes what precedes a value that is text, or another.
func (w *schemaWriter) kind(text bool, p part) part {
	k := w.format.Kinds
	switch {
	case w.mode != asText || k[0] == "":
		return p
	case text:
		return w.b.seq(w.b.literal(k[0]), p)
	}
	return w.b.seq(w.b.literal(k[1]), p)
}

// bareKeys reports whether keys have no quotes.
func (w *schemaWriter) bareKeys() bool { return w.mode == asPython && w.format.Quote != "" }

// key writes the name of an object's member.
func (w *schemaWriter) key(name, path string) part {
	if !w.bareKeys() {
		return w.b.literal(writeJSON(name))
	}
	if !identifiers.MatchString(name) {
		return w.fail(path, "%.40q cannot be written in the model's format of tool calls; use letters, digits and _", name)
	}
	return w.b.literal(name)
}

// plainText writes a constant as it is.
func (w *schemaWriter) plainText(text, path string) part {
	if strings.Contains(text, w.endOfText()) {
		return w.fail(path, "%.40q cannot be written in the model's format of tool calls, in which %s ends an argument", text, w.endOfText())
	}
	quote := ""
	if w.mode == asPython {
		quote = w.format.Quote
	}
	return w.b.literal(quote + text + quote)
}

// plainChars writes the characters of a string with a pattern or limits. The first
// character of what ends an argument is not among them.
func (w *schemaWriter) plainChars() charset {
	first := rune(w.endOfText()[0])
	return func(b *builder, p part, ranges []runeRange) {
		b.runesInto(p, intersect(ranges, without(runeRange{first, first})))
	}
}

// except writes any text that does not contain a mark. A state for each prefix of the
// mark stands for a text that ends in it.
func (b *builder) except(mark string) part {
	end := []rune(mark)
	states := make([]int32, len(end))
	for i := range states {
		states[i] = b.state()
	}
	out := b.state()
	for i, from := range states {
		b.eps(from, out)
		var taken []runeRange
		for to := len(end) - 1; to >= 0; to-- { // the longest prefix that ends in a character
			c := end[to]
			if !strings.HasSuffix(string(end[:i])+string(c), string(end[:to+1])) || slices.Contains(taken, runeRange{c, c}) {
				continue
			}
			taken = append(taken, runeRange{c, c})
			if to+1 < len(end) {
				next := b.runes([]runeRange{{c, c}})
				b.eps(from, next.in)
				b.eps(next.out, states[to+1])
			}
		}
		others := b.runes(outside(taken))
		b.eps(from, others.in)
		b.eps(others.out, states[0])
	}
	return part{states[0], out}
}
