package grammar

import (
	"slices"
	"strings"
	"sync"
	"unicode"
)

// groupKind reads the start of a group after its parenthesis, and sets the flags that it
// has. It returns "?:", the start of a look-around, or "?)" where nothing is left to read:
// after a comment, or flags alone.
func (r *patternReader) groupKind() string {
	for _, kind := range []string{"?:", "?=", "?!", "?<=", "?<!"} {
		if r.skip(kind) {
			return kind
		}
	}
	if !r.skip("?") {
		return "?:"
	}
	if r.skip("#") {
		_, rest, closed := strings.Cut(r.text, ")")
		if r.text = rest; !closed {
			r.fail("a comment is not closed")
		}
		return "?)"
	}
	if r.skip("P<") || r.skip("<") {
		name, rest, closed := strings.Cut(r.text, ">")
		if r.text = rest; !closed || !identifiers.MatchString(name) {
			r.fail("the name of a group needs letters, digits and _")
		}
		return "?:"
	}
	for on := true; r.err == nil; {
		switch c := r.take(); c {
		case '-':
			on = false
		case 'i':
			r.fold = on
		case 's':
			r.all = on
		case 'a', 'u': // what \w matches, which differs between dialects anyway
		case ')':
			return "?)"
		case ':':
			return "?:"
		default:
			r.fail("groups of the kind (?%c are not supported; write (?:…), and flags i and s alone", c)
		}
	}
	return "?)"
}

// folded returns characters in upper and lower case, if the flag is set. Validators agree
// on the two cases of a letter; only some find that s equals ſ, or k the sign K.
func (r *patternReader) folded(ranges []runeRange, loose bool) []runeRange {
	if !r.fold {
		return ranges
	}
	out := slices.Clone(ranges)
	add := func(c rune) {
		for d := unicode.SimpleFold(c); d != c; d = unicode.SimpleFold(d) {
			if loose || (c < 0x80) == (d < 0x80) {
				out = append(out, runeRange{d, d})
			}
		}
	}
	if len(ranges) == 1 && ranges[0].lo == ranges[0].hi {
		add(ranges[0].lo)
		return merged(out)
	}
	list := foldable()
	r.grow(len(list) / 8)
	ranges = merged(ranges)
	for _, c := range list {
		if _, in := slices.BinarySearchFunc(ranges, c, func(one runeRange, c rune) int {
			switch {
			case one.hi < c:
				return -1
			case one.lo > c:
				return 1
			}
			return 0
		}); in {
			add(c)
		}
	}
	return merged(out)
}

// foldable returns the characters that have another case.
var foldable = sync.OnceValue(func() (list []rune) {
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if unicode.SimpleFold(c) != c {
			list = append(list, c)
		}
	}
	return list
})
