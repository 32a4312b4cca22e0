package grammar

import (
	"errors"
	"slices"
	"strings"
)

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

// unescaped are all other characters.
var unescaped = without(escaped...)

// jsonText writes characters in a JSON string: unescaped if possible, else as the
// shortest escape.
func jsonText(b *builder, p part, ranges []runeRange) {
	b.runesInto(p, intersect(ranges, unescaped))
	special := intersect(ranges, escaped)
	if len(special) == 0 {
		return
	}
	b.shared(p, "escapes "+rangesKey(special), func(inside part) {
		var texts []string
		for _, r := range special {
			for c := r.lo; c <= r.hi; c++ {
				text := writeJSON(string(c))
				texts = append(texts, text[1:len(text)-1])
			}
		}
		b.words(inside, texts)
	})
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

// string writes the strings that meet a list of tests.
func (w *schemaWriter) string(tests []textTest) part {
	b := w.b
	mark, chars, one := `"`, charset(jsonText), w.character
	if w.plain() {
		mark, chars = "", w.plainChars()
		if w.mode == asPython {
			mark = w.format.Quote
		}
		one = func() part { return b.set(anyRune, chars) }
	}
	if w.exact && !w.plain() {
		one = func() part { return w.rule("exact character", func() part { return b.set(anyRune, chars) }) }
	}
	quoted := func(p part) part { return b.seq(w.b.literal(mark), p, w.b.literal(mark)) }
	switch {
	case len(tests) == 0 && w.plain():
		return w.rule(w.mode.named("text"), func() part { return quoted(b.except(w.endOfText())) })
	case len(tests) == 0:
		return w.rule(w.spelled("string"), func() part { return quoted(b.star(one())) })
	}
	return w.rule(w.spelled(w.mode.named(testsKey(tests))), func() part {
		if t := tests[0]; len(tests) == 1 && t.kind == testLength && !t.not && (t.hi < 0 || t.lo <= t.hi) {
			return quoted(b.repeat(t.lo, t.hi, one))
		}
		if p, ok := w.single(tests, chars); ok {
			return quoted(p)
		}
		d, err := w.automaton([][]textTest{tests}, maxAutomaton)
		if errors.Is(err, ErrTooLarge) {
			d, err = w.automaton([][]textTest{shorter(tests)}, maxAutomaton)
		}
		if err != nil {
			return w.fail(tests[0].path, "%v", err)
		}
		return quoted(b.automaton(d, chars))
	})
}

// longestTested is the length of the longest strings that are written where an automaton
// for all lengths is too large: the limit of Pydantic's HttpUrl.
const longestTested = 2083

// shorter returns tests with a smaller maximum length.
func shorter(tests []textTest) []textTest {
	out := slices.Clone(tests)
	for i, t := range out {
		if t.kind == testLength && !t.not && t.lo <= longestTested && t.hi > longestTested {
			out[i].hi = longestTested
		}
	}
	return out
}

// strings writes the strings that meet all tests of one of the groups. Groups of several
// tests share an automaton if it is small, so a text has one parse.
func (w *schemaWriter) strings(groups [][]textTest) part {
	var parts []part
	var several [][]textTest
	for _, tests := range groups {
		if len(tests) > 1 || len(tests) == 1 && tests[0].not {
			several = append(several, tests)
		} else {
			parts = append(parts, w.string(tests))
		}
	}
	if len(several) > 1 && !w.plain() {
		if d, err := w.automaton(several, maxShared); err == nil {
			p := w.b.automaton(d, jsonText)
			return w.b.alt(append(parts, w.b.seq(w.b.literal(`"`), p, w.b.literal(`"`)))...)
		}
	}
	for _, tests := range several {
		parts = append(parts, w.string(tests))
	}
	return w.b.alt(parts...)
}

// maxShared limits the states of an automaton of several groups. Random schemas needed up
// to 13,000; a larger automaton leaves no room for others in a grammar.
const maxShared = 1 << 14

// single writes a single pattern or format directly, if it has no look-around. Unlike a
// deterministic automaton, the network cannot become larger than the pattern.
func (w *schemaWriter) single(tests []textTest, chars charset) (part, bool) {
	if len(tests) != 1 || tests[0].not || tests[0].kind != testPattern && tests[0].kind != testFormat {
		return part{}, false
	}
	p := w.patternOf(tests[0], false, false)
	if p == nil || !w.spend(p.size, tests[0].path) {
		return part{}, false
	}
	return w.b.pattern(p, chars, tests[0].kind == testFormat)
}

// stringLeaf returns the leaf of a schema's keywords for strings.
func (w *schemaWriter) stringLeaf(o *object, path string) *expr {
	var tests []textTest
	if o.has("minLength", "maxLength") {
		tests = append(tests, lengthTest(w.count(o, "minLength", path), w.count(o, "maxLength", path), path))
	}
	if v, ok := o.get("pattern"); ok {
		tests = append(tests, w.patternTest(v.(string), path+"/pattern"))
	}
	if v, ok := o.get("format"); ok {
		name := v.(string)
		if _, known := formats[name]; known {
			tests = append(tests, w.formatTest(name, path+"/format"))
		}
	}
	if tests == nil {
		return w.exprs.any
	}
	var each []*expr
	for _, t := range tests { // a leaf for each, because each may be negated
		if t.kind == testLength && t.lo == 0 && t.hi < 0 {
			continue
		}
		each = append(each, w.leaf(restricted(kindString, &shape{texts: []textTest{t}}), path))
	}
	return w.all(each...)
}

// joinTexts returns the tests of two shapes, each once.
func joinTexts(a, b []textTest) []textTest {
	out := slices.Clone(a)
next:
	for _, t := range b {
		for i, known := range out {
			switch {
			case known.testID == t.testID:
				continue next
			case known.kind == testLength && t.kind == testLength && !known.not && !t.not:
				out[i].lo = max(known.lo, t.lo)
				if known.hi < 0 || t.hi >= 0 && t.hi < known.hi {
					out[i].hi = t.hi
				}
				continue next
			}
		}
		out = append(out, t)
	}
	return out
}

// maxCount limits the counts of keywords. No answer is so long that it could exceed a
// larger maximum.
const maxCount = 1 << 16

// count reads a count; if absent, a minimum is 0 and a maximum -1: no limit.
func (w *schemaWriter) count(o *object, word, path string) int {
	none := 0
	if strings.HasPrefix(word, "max") {
		none = -1
	}
	v, ok := o.get(word)
	if !ok {
		return none
	}
	r, ok := rational(v)
	switch {
	case ok && r.Num().IsInt64() && r.Num().Int64() <= maxCount:
		return int(r.Num().Int64())
	case none == 0:
		w.fail(path+"/"+word, "expected an integer from 0 to %d, found %s", maxCount, writeJSON(v))
	}
	return none
}
