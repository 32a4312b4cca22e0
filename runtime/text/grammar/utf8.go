package grammar

import (
	"slices"
	"unicode/utf8"
)

// runeRange is an inclusive range of code points.
type runeRange struct{ lo, hi rune }

const maxRune = utf8.MaxRune

// anyRune are all code points that UTF-8 can encode.
var anyRune = []runeRange{{0, 0xD7FF}, {0xE000, maxRune}}

// runes matches one character of the ranges, in UTF-8.
func (b *builder) runes(ranges []runeRange) part {
	p := b.nothing()
	b.runesInto(p, ranges)
	return p
}

// manyRanges is the number of ranges beyond ASCII from which they are written once, as a
// rule. A class like \w has 700, and an automaton may need it in each of its states.
const manyRanges = 8

// runesInto adds to p the characters of the ranges, in UTF-8.
func (b *builder) runesInto(p part, ranges []runeRange) {
	for _, r := range intersect(ranges, []runeRange{{0, 0x7F}}) {
		b.encoded(p, r.lo, r.hi)
	}
	beyond := intersect(clip(ranges), []runeRange{{0x80, maxRune}})
	most := manyRanges
	if b.compact {
		most = 0
	}
	if len(beyond) <= most {
		b.wide(p, beyond)
		return
	}
	b.shared(p, "class "+rangesKey(beyond), func(inside part) { b.wide(inside, beyond) })
}

// shared adds to p what write adds to a part. It is written once, as a rule.
func (b *builder) shared(p part, key string, write func(part)) {
	r, known := b.classes[key]
	if !known {
		r = b.rule("class of characters")
		if b.classes == nil {
			b.classes = map[string]int32{}
		}
		b.classes[key] = r
		inside := b.nothing()
		write(inside)
		b.define(r, inside)
	}
	b.states[p.in].calls = append(b.states[p.in].calls, call{r, p.out})
}

// wide adds to p characters beyond ASCII.
func (b *builder) wide(p part, ranges []runeRange) {
	for _, r := range ranges {
		for _, length := range []struct{ lo, hi rune }{{0x80, 0x7FF}, {0x800, 0xFFFF}, {0x10000, maxRune}} {
			lo, hi := max(r.lo, length.lo), min(r.hi, length.hi)
			if lo <= hi {
				b.encoded(p, lo, hi)
			}
		}
	}
}

// encoded adds to p the characters from lo to hi, which have encodings of equal length.
// It splits the range where the first bytes differ and the remaining bytes do not cover
// all values.
func (b *builder) encoded(p part, lo, hi rune) {
	first, last := []byte(string(lo)), []byte(string(hi))
	b.between(p.in, p.out, first, last)
}

// between adds transitions from state from to state to for the byte strings from lo to
// hi of equal length; continuation bytes range from 0x80 to 0xBF.
func (b *builder) between(from, to int32, lo, hi []byte) {
	if len(lo) == 1 {
		b.states[from].edges = append(b.states[from].edges, edge{lo[0], hi[0], to})
		return
	}
	full := func(fill byte) []byte { return slices.Repeat([]byte{fill}, len(lo)-1) }
	step := func(a, z byte, lo, hi []byte) {
		if a > z {
			return
		}
		mid := b.state()
		b.states[from].edges = append(b.states[from].edges, edge{a, z, mid})
		b.between(mid, to, lo, hi)
	}
	if lo[0] == hi[0] {
		step(lo[0], lo[0], lo[1:], hi[1:])
		return
	}
	a, z := lo[0], hi[0]
	if !slices.Equal(lo[1:], full(0x80)) {
		step(a, a, lo[1:], full(0xBF))
		a++
	}
	if !slices.Equal(hi[1:], full(0xBF)) {
		step(z, z, full(0x80), hi[1:])
		z--
	}
	step(a, z, full(0x80), full(0xBF))
}

// clip removes surrogates and values beyond Unicode from ranges.
func clip(ranges []runeRange) []runeRange { return intersect(ranges, anyRune) }

// intersect returns the intersection of two lists.
func intersect(a, b []runeRange) []runeRange {
	var out []runeRange
	for _, x := range a {
		for _, y := range b {
			if lo, hi := max(x.lo, y.lo), min(x.hi, y.hi); lo <= hi {
				out = append(out, runeRange{lo, hi})
			}
		}
	}
	return out
}

// without returns anyRune without the ranges.
func without(ranges ...runeRange) []runeRange { return clip(outside(ranges)) }

// merged returns the ranges in order, without overlaps.
func merged(ranges []runeRange) []runeRange {
	sorted := slices.Clone(ranges)
	slices.SortFunc(sorted, func(a, b runeRange) int { return int(a.lo - b.lo) })
	var out []runeRange
	for _, r := range sorted {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
		} else if r.lo <= r.hi {
			out = append(out, r)
		}
	}
	return out
}

// outside returns the code points outside of the ranges.
func outside(ranges []runeRange) []runeRange {
	var out []runeRange
	from := rune(0)
	for _, r := range merged(ranges) {
		if r.lo > from {
			out = append(out, runeRange{from, r.lo - 1})
		}
		from = r.hi + 1
	}
	if from <= maxRune {
		out = append(out, runeRange{from, maxRune})
	}
	return out
}

// words adds to p a list of texts of which none begins another.
func (b *builder) words(p part, texts []string) {
	states := map[string]int32{"": p.in}
	for _, text := range texts {
		at := p.in
		for i := range len(text) {
			to, known := states[text[:i+1]]
			if !known {
				if to = p.out; i+1 < len(text) {
					to = b.state()
				}
				states[text[:i+1]] = to
				b.states[at].edges = append(b.states[at].edges, edge{text[i], text[i], to})
			}
			at = to
		}
	}
}
