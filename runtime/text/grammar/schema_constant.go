package grammar

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// constants writes values literally.
func (w *schemaWriter) constants(list []any, path string) part {
	var parts []part
	for _, v := range list {
		if w.b.err != nil {
			break
		}
		parts = append(parts, w.constant(v, path))
	}
	return w.b.alt(parts...)
}

func (w *schemaWriter) constant(v any, path string) part {
	b := w.b
	var parts []part
	switch v := v.(type) {
	case json.Number:
		return w.b.literal(w.numberConstant(v))
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
	return w.b.literal(writeJSON(v))
}

// inside writes a constant inside of another.
func (w *schemaWriter) inside(v any, path string) part {
	before := w.mode
	w.mode = before.inner()
	defer func() { w.mode = before }()
	return w.constant(v, path)
}

// numberConstant writes a number as in the schema, but integers without point and
// exponent, so that every reader decodes them as integers. Where equal values must be
// written alike, it writes all numbers as keyOf does, unless this would round them.
func (w *schemaWriter) numberConstant(n json.Number) string {
	text := numberText(n)
	if !strings.ContainsAny(text, ".eE") || w.exact && sameNumber(text, n.String()) {
		return text
	}
	return n.String()
}

// sameNumber reports whether two numbers, of which the first is a double, are equal.
func sameNumber(a, b string) bool {
	if len(b) > maxDigits || hugeExponent.MatchString(b) {
		return false
	}
	x, _ := new(big.Rat).SetString(a)
	y, _ := new(big.Rat).SetString(b)
	return x != nil && y != nil && x.Cmp(y) == 0
}

// freeKey writes the string of a key that is not in taken: a trie of these keys that
// is left where a character differs. Inside the trie it writes no escapes, which could
// spell a taken key differently.
func (w *schemaWriter) freeKey(taken []string) part {
	b := w.b
	bare := w.bareKeys()
	if len(taken) == 0 && !bare {
		return w.string(nil)
	}
	mark, spell, one := `"`, charset(jsonText), w.character
	if w.exact {
		one = func() part { return b.set(anyRune, spell) }
	}
	if bare {
		mark, spell, one = "", plainText, func() part { return b.runes(identifierRunes) }
	}
	rest := b.star(one())
	quote := b.literal(mark)
	b.eps(rest.out, quote.in)
	node := func() map[rune]int32 { return map[rune]int32{} }
	open := b.literal(mark)
	next := map[int32]map[rune]int32{open.out: node()}
	order := []int32{open.out}
	taking := map[int32]bool{}
	for _, name := range taken {
		at := open.out
		for _, r := range name {
			if b.err != nil {
				return b.nothing()
			}
			to, ok := next[at][r]
			if !ok {
				p := b.set([]runeRange{{r, r}}, spell)
				b.eps(at, p.in)
				to = p.out
				next[at][r], next[to] = to, node()
				order = append(order, to)
			}
			at = to
		}
		taking[at] = true
	}
	for _, at := range order {
		if b.err != nil {
			break
		}
		used := slices.Clone(escaped)
		for r := range next[at] {
			used = append(used, runeRange{r, r})
		}
		others := outside(used)
		if bare {
			others = intersect(others, identifierRunes)
		}
		leave := b.runes(others)
		b.eps(at, leave.in)
		b.eps(leave.out, rest.in)
		if !taking[at] && (at != open.out || !bare) {
			b.eps(at, quote.in)
		}
	}
	return part{open.in, quote.out}
}
