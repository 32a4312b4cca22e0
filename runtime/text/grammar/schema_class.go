package grammar

import (
	"strings"
	"sync"
	"unicode"

	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// escape reads an escape outside of a class, after the backslash.
func (r *patternReader) escape() *pattern {
	switch {
	case r.skip("b"):
		return r.boundary(false)
	case r.skip("B"):
		return r.boundary(true)
	case r.skip("A"):
		return &pattern{op: patternBegin}
	case r.skip("z"):
		return &pattern{op: patternEnd}
	case r.skip("Z"): // the end of the text in Python, that of the last line elsewhere
		return r.end()
	}
	return r.set(r.folded(r.escapedSet(), r.loose))
}

// boundary returns a word boundary, or with not, a place that is none.
func (r *patternReader) boundary(not bool) *pattern {
	is, isNot := setOf(r.named('w', r.loose)...), setOf(r.named('w', !r.loose)...)
	before, after := look(is, false, true), look(is, false, false)
	notBefore, notAfter := look(isNot, true, true), look(isNot, true, false)
	if not {
		return alternate(concat(before, after), concat(notBefore, notAfter))
	}
	return alternate(concat(before, notAfter), concat(notBefore, after))
}

// named returns the characters of \d, \w or \s in every dialect or, with loose, in any.
func (r *patternReader) named(c rune, loose bool) []runeRange {
	switch {
	case c == 'd' && loose:
		return looseSets().digit
	case c == 'd':
		return []runeRange{{'0', '9'}}
	case c == 'w' && loose:
		return looseSets().word
	case c == 'w':
		return []runeRange{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	case loose:
		return looseSets().space
	}
	return []runeRange{{'\t', '\r'}, {' ', ' '}}
}

// escapedSet reads an escape after the backslash and returns its characters.
func (r *patternReader) escapedSet() []runeRange {
	c := r.take()
	switch c {
	case 'd', 'w', 's':
		return r.named(c, r.loose)
	case 'D', 'W', 'S':
		return outside(r.named(unicode.ToLower(c), !r.loose))
	case 'p', 'P':
		name, rest, ok := strings.Cut(r.text, "}")
		if !ok || !strings.HasPrefix(name, "{") || len(name) > 60 {
			r.fail(`\%c needs a {name}`, c)
			return nil
		}
		r.text = rest
		set, err := regexp.Property(name[1:])
		if err != nil {
			r.fail("%w", err)
		}
		if c == 'P' {
			return outside(classOf(set))
		}
		return classOf(set)
	}
	code := r.escaped(c)
	return []runeRange{{code, code}}
}

var oneCharacter = map[rune]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', '0': 0}

// escaped returns the character of an escape that stands for one.
func (r *patternReader) escaped(c rune) rune {
	if code, ok := oneCharacter[c]; ok {
		if c == '0' && r.text != "" && r.text[0] >= '0' && r.text[0] <= '9' {
			r.fail(`octal numbers are not supported; write \x..`)
		}
		return code
	}
	switch {
	case c == 'c':
		if l := r.take(); l < 0x80 && unicode.IsLetter(l) {
			return l % 32
		}
		r.fail(`\c needs a letter`)
		return 0
	case c == 'x':
		return r.hex(c, 2)
	case c == 'u':
		return r.codePoint()
	case c > 0x20 && c < 0x7F && !unicode.IsLetter(c) && !unicode.IsDigit(c):
		return c
	}
	r.fail(`\%c is not supported; write the character itself, and groups instead of back-references`, c)
	return 0
}

func (r *patternReader) hex(name rune, digits int) rune {
	var code rune
	for range digits {
		d := strings.IndexRune("0123456789abcdefABCDEF", r.take())
		if d < 0 {
			r.fail(`\%c needs %d hexadecimal digits`, name, digits)
			return 0
		}
		if d > 15 {
			d -= 6
		}
		code = code<<4 | rune(d)
	}
	return code
}

// codePoint reads what follows \u: four digits, two halves of a pair, or {digits}.
func (r *patternReader) codePoint() rune {
	if r.skip("{") {
		digits, rest, ok := strings.Cut(r.text, "}")
		if !ok || len(digits) == 0 || len(digits) > 6 {
			r.fail(`\u{…} needs one to six hexadecimal digits`)
			return 0
		}
		code := r.hex('u', len(digits))
		r.text = rest
		if code > maxRune || code >= 0xD800 && code <= 0xDFFF {
			r.fail(`\u{%s} is no character`, digits)
		}
		return code
	}
	code := r.hex('u', 4)
	if code < 0xD800 || code > 0xDFFF {
		return code
	}
	if code < 0xDC00 && r.skip(`\u`) {
		if low := r.hex('u', 4); low >= 0xDC00 && low <= 0xDFFF {
			return 0x10000 + (code-0xD800)<<10 + (low - 0xDC00)
		}
	}
	r.fail(`\u%x is half of a surrogate pair; write the character itself`, code)
	return 0
}

// class reads a class after its opening bracket.
func (r *patternReader) class() []runeRange {
	not := r.skip("^")
	if not {
		r.loose = !r.loose
		defer func() { r.loose = !r.loose }()
	}
	if strings.HasPrefix(r.text, "]") {
		r.fail(`a class starts with ]; write \]`)
	}
	var ranges []runeRange
	for r.err == nil && !r.skip("]") {
		first := r.member()
		if !strings.HasPrefix(r.text, "-") || strings.HasPrefix(r.text, "-]") {
			r.grow(len(first))
			ranges = append(ranges, first...)
			continue
		}
		r.skip("-")
		last := r.member()
		if !isOne(first) || !isOne(last) {
			r.fail(`a class escape cannot be the end of a range; write \- for the character`)
			continue
		}
		if last[0].lo < first[0].lo {
			r.fail("the range %q-%q is empty", first[0].lo, last[0].lo)
		}
		r.grow(1)
		ranges = append(ranges, runeRange{first[0].lo, last[0].lo})
	}
	ranges = r.folded(merged(ranges), r.loose)
	if not {
		return outside(ranges)
	}
	return ranges
}

func isOne(set []runeRange) bool { return len(set) == 1 && set[0].lo == set[0].hi }

// member reads a character or an escape inside of a class.
func (r *patternReader) member() []runeRange {
	switch c := r.take(); {
	case c == '\\' && r.skip("b"): // a backspace inside of a class
		return []runeRange{{'\b', '\b'}}
	case c == '\\' && r.skip("-"):
		return []runeRange{{'-', '-'}}
	case c == '\\':
		return r.escapedSet()
	case c == '[' && strings.HasPrefix(r.text, ":"):
		r.fail(`[:classes:] are not supported; write \[ for the character`)
		return nil
	default:
		return []runeRange{{c, c}}
	}
}

// looseSets returns the characters of \d, \w and \s in any dialect.
var looseSets = sync.OnceValue(func() (sets struct{ digit, word, space []runeRange }) {
	sets.digit = classOf(regexp.Table(unicode.Nd))
	sets.word = classOf(regexp.Table(unicode.L, unicode.N).Union(regexp.Set{'_', '_'}))
	sets.space = classOf(regexp.Table(unicode.White_Space).Union(regexp.Set{0x1c, 0x20, 0xfeff, 0xfeff}))
	return sets
})
