package grammar

import "fmt"

// rule returns a rule of this package and creates it on first use.
func (w *schemaWriter) rule(name string, make func() part) part {
	r, ok := w.named[name]
	if !ok {
		r = w.b.rule(name)
		w.named[name] = r
		w.b.define(r, make())
	}
	return w.b.call(r)
}

// space allows one space after a colon or a comma, the most common style in training
// data. White space is not allowed elsewhere.
func (w *schemaWriter) space() part {
	p := w.b.nothing()
	w.b.eps(p.in, p.out)
	w.b.states[p.in].edges = append(w.b.states[p.in].edges, edge{' ', ' ', p.out})
	return p
}

// escaped are the characters that must be escaped in a JSON string.
var escaped = []runeRange{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}

// jsonText writes characters in a JSON string: unescaped if possible, else as the
// shortest escape.
func jsonText(b *builder, ranges []runeRange) part {
	parts := []part{b.runes(intersect(ranges, without(escaped...)))}
	for _, r := range intersect(ranges, escaped) {
		for c := r.lo; c <= r.hi; c++ {
			text := writeJSON(string(c))
			parts = append(parts, b.literal(text[1:len(text)-1]))
		}
	}
	return b.alt(parts...)
}

// character writes any character of a JSON string, in all spellings.
func (w *schemaWriter) character() part {
	return w.rule("character", func() part {
		b := w.b
		hex := func(set string) part {
			var parts []part
			for _, c := range set {
				parts = append(parts, b.bytes(byte(c), byte(c)))
			}
			return b.alt(parts...)
		}
		const all = "0123456789abcdefABCDEF"
		short := b.seq(b.literal(`\`), hex(`"\/bfnrt`))
		plain := b.alt( // U+0000 to U+D7FF and U+E000 to U+FFFF
			b.seq(hex("0123456789abcefABCEF"), hex(all), hex(all), hex(all)),
			b.seq(hex("dD"), hex("01234567"), hex(all), hex(all)))
		pair := b.seq(hex("dD"), hex("89abAB"), hex(all), hex(all), b.literal(`\u`), hex("dD"), hex("cdefCDEF"), hex(all), hex(all))
		return b.alt(b.runes(without(escaped...)), short, b.seq(b.literal(`\u`), b.alt(plain, pair)))
	})
}

// string writes the strings of a schema.
func (w *schemaWriter) string(o *object, path string) part {
	b := w.b
	quoted := func(p part) part { return b.seq(b.literal(`"`), p, b.literal(`"`)) }
	chars, one := charset(jsonText), w.character
	if w.plain() {
		mark := ""
		if w.mode == asPython {
			mark = w.format.Quote
		}
		quoted, chars = func(p part) part { return b.seq(w.text(mark), p, w.text(mark)) }, w.plainChars()
		one = func() part { return chars(b, anyRune) }
	}
	pattern, hasPattern := w.patternOf(o, path)
	known := w.formatOf(o, path)
	lo, hi := w.count(o, "minLength", path), w.count(o, "maxLength", path)
	bounded := lo > 0 || hi >= 0
	if hasPattern && known != "" || (hasPattern || known != "") && bounded {
		return w.fail(path, "pattern, format and length limits of one string cannot be combined; write the lengths into the pattern, as in ^[a-z]{2,8}$")
	}
	switch {
	case hasPattern:
		p, err := b.regex(pattern, chars, false)
		if err != nil {
			return w.fail(path+"/pattern", "%v", err)
		}
		return quoted(p)
	case known != "":
		p, err := b.regex(known, chars, true)
		if err != nil {
			panic(fmt.Sprintf("bug: format %v: %v", o.values["format"], err))
		}
		return quoted(p)
	case bounded:
		return w.limited(lo, hi, path, quoted, one)
	case w.plain():
		return w.rule("text", func() part { return quoted(b.except(w.endOfText())) })
	}
	return w.rule("string", func() part { return quoted(b.star(w.character())) })
}

// patternOf returns the pattern in Go's syntax.
func (w *schemaWriter) patternOf(o *object, path string) (pattern string, ok bool) {
	v, ok := o.get("pattern")
	if !ok {
		return "", false
	}
	text, isText := v.(string)
	if !isText {
		w.fail(path+"/pattern", "expected a string")
		return "", false
	}
	if !w.spend(len(text)/8, path) {
		return "", false
	}
	pattern, err := portable(text)
	if err != nil {
		w.fail(path+"/pattern", "%v", err)
	}
	return pattern, err == nil
}

// formatOf returns the pattern of a known format, or "" for an unknown one.
func (w *schemaWriter) formatOf(o *object, path string) string {
	name, isText := o.values["format"].(string)
	if !isText && o.has("format") {
		w.fail(path+"/format", "expected the name of a format")
	}
	return formats[name]
}

func (w *schemaWriter) limited(lo, hi int, path string, quoted func(part) part, one func() part) part {
	if hi >= 0 && hi < lo {
		return w.fail(path, "minLength %d is more than maxLength %d", lo, hi)
	}
	return quoted(w.b.repeat(lo, hi, one))
}

// count reads a non-negative integer keyword; if absent, a minimum is 0 and a maximum
// -1.
func (w *schemaWriter) count(o *object, word, path string) int {
	const most = 1 << 16
	v, ok := o.get(word)
	if !ok {
		if word[:3] == "max" {
			return -1
		}
		return 0
	}

	r, ok := rational(v)
	if !ok || !r.IsInt() || r.Sign() < 0 || !r.Num().IsInt64() || r.Num().Int64() > most {
		w.fail(path+"/"+word, "expected an integer from 0 to %d, found %s", most, writeJSON(v))
		return 0
	}
	return int(r.Num().Int64())
}
