package grammar

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// portable rewrites a schema's pattern for Go. The pattern is in ECMA-262's syntax, but
// validators in Python use Python's. The result matches only texts that match in both
// dialects: of a class like \w it uses the characters in both, and it refuses syntax
// that only one dialect supports.
func portable(pattern string) (string, error) {
	r := patternReader{text: pattern}
	for r.text != "" && r.err == nil {
		if r.out.Len() > maxSource {
			return "", fmt.Errorf("%w: pattern", ErrTooLarge)
		}
		r.next()
	}
	if r.err != nil {
		return "", fmt.Errorf("pattern %.80q: %w", pattern, r.err)
	}
	return r.out.String(), nil
}

type patternReader struct {
	text string // unread text
	out  strings.Builder
	err  error
}

func (r *patternReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// take returns the next character; at the end it records an error and returns 0.
func (r *patternReader) take() rune {
	c, n := utf8.DecodeRuneInString(r.text)
	if n == 0 {
		r.fail("unexpected end of the pattern")
		return 0
	}
	r.text = r.text[n:]
	return c
}

func (r *patternReader) character(c rune) { fmt.Fprintf(&r.out, `\x{%x}`, c) }

var quantifier = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

func (r *patternReader) next() {
	switch c := r.take(); c {
	case '\\':
		if set := r.escape(&single); set != "" {
			r.out.WriteString("[" + set + "]")
		}
	case '[':
		r.class()
	case '.':
		r.out.WriteString(`[^\n\r\x{2028}\x{2029}]`)
	case '(':
		if strings.HasPrefix(r.text, "?") && !strings.HasPrefix(r.text, "?:") {
			r.fail("lookarounds, flags and named groups are not supported; write (?:…)")
		}
		r.out.WriteByte('(')
		if rest, ok := strings.CutPrefix(r.text, "?:"); ok {
			r.text = rest
			r.out.WriteString("?:")
		}
	case '{':
		if q := quantifier.FindString("{" + r.text[:min(len(r.text), 32)]); q != "" {
			r.out.WriteString(q)
			r.text = r.text[len(q)-1:]
			return
		}
		if strings.HasPrefix(r.text, ",") {
			r.fail("{,n} is a repetition only in Python; write {0,n}")
		}
		r.character(c)
	case '}', ']':
		r.character(c)
	case '*', '+', '?', '|', ')', '^', '$':
		r.out.WriteRune(c)
	default:
		r.character(c)
	}
}

// sets maps class escapes to the inside of a Go class.
type sets map[rune]string

// The characters of a class escape in both dialects, for use in a class; in either
// dialect, for a negated class.
const (
	eitherDigit = `\p{Nd}`
	eitherWord  = `\p{L}\p{N}_`
	bothSpace   = `\t\n\v\f\r `
	eitherSpace = `\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
)

var (
	single  = sets{'d': `0-9`, 'D': `^` + eitherDigit, 'w': `0-9A-Za-z_`, 'W': `^` + eitherWord, 's': bothSpace, 'S': `^` + eitherSpace}
	within  = sets{'d': `0-9`, 'D': `\P{Nd}`, 'w': `0-9A-Za-z_`, 'W': "", 's': bothSpace, 'S': ""} // see inClass
	negated = sets{'d': eitherDigit, 'D': `\D`, 'w': eitherWord, 'W': `\W`, 's': eitherSpace, 'S': `\S`}
)

// inClass returns the sets including complements as explicit ranges, because a Go class
// cannot contain a class.
var inClass = sync.OnceValue(func() sets {
	rest := func(set string) string {
		re, err := syntax.Parse("[^"+set+"]", syntax.Perl)
		if err != nil {
			panic("bug: " + err.Error())
		}
		var out strings.Builder
		for i := 0; i+1 < len(re.Rune); i += 2 {
			fmt.Fprintf(&out, `\x{%x}-\x{%x}`, re.Rune[i], re.Rune[i+1])
		}
		return out.String()
	}
	all := sets{'W': rest(eitherWord), 'S': rest(eitherSpace)}
	for k, v := range within {
		if v != "" {
			all[k] = v
		}
	}
	return all
})

// escape parses an escape after the backslash. It returns the inside of a class, or
// writes a single character and returns "".
func (r *patternReader) escape(known *sets) string {
	c := r.take()
	if set := (*known)[c]; set != "" {
		return set
	}
	if c == 'p' || c == 'P' {
		name, rest, ok := strings.Cut(r.text, "}")
		if !ok || !strings.HasPrefix(name, "{") || len(name) > 40 {
			r.fail(`\%c needs a {name}`, c)
			return ""
		}
		r.text = rest
		return `\` + string(c) + name + "}"
	}
	if code, ok := r.escaped(c); ok {
		r.character(code)
	}
	return ""
}

var oneCharacter = map[rune]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', '0': 0}

// escaped returns the character of an escape that stands for one.
func (r *patternReader) escaped(c rune) (rune, bool) {
	if code, ok := oneCharacter[c]; ok {
		if c == '0' && r.text != "" && r.text[0] >= '0' && r.text[0] <= '9' {
			r.fail(`octal numbers are not supported; write \x..`)
		}
		return code, true
	}
	digits := map[rune]int{'x': 2, 'u': 4}[c]
	switch {
	case digits > 0:
		var code rune
		for range digits {
			d := strings.IndexRune("0123456789abcdefABCDEF", r.take())
			if d < 0 {
				r.fail(`\%c needs %d hexadecimal digits`, c, digits)
				return 0, false
			}
			if d > 15 {
				d -= 6
			}
			code = code<<4 | rune(d)
		}
		if code >= 0xD800 && code <= 0xDFFF {
			r.fail(`\u%x is half of a surrogate pair; write the character itself`, code)
		}
		return code, true
	case c > 0x20 && c < 0x7F && !strings.ContainsRune("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", c):
		return c, true
	}
	r.fail(`\%c is not supported; backreferences and word boundaries are not supported`, c)
	return 0, false
}

// class parses a class after its opening bracket.
func (r *patternReader) class() {
	known := inClass()
	r.out.WriteByte('[')
	if strings.HasPrefix(r.text, "^") {
		r.text, known = r.text[1:], negated
		r.out.WriteByte('^')
	}
	if strings.HasPrefix(r.text, "]") {
		r.fail(`a class starts with ]; write \]`)
	}
	for r.err == nil && !strings.HasPrefix(r.text, "]") {
		if r.out.Len() > maxSource {
			r.fail("%w", ErrTooLarge)
		}
		isSet := r.member(known)
		if len(r.text) < 2 || r.text[0] != '-' || r.text[1] == ']' {
			continue
		}
		r.text = r.text[1:]
		r.out.WriteByte('-')
		if isSet || r.member(known) {
			r.fail(`a class escape cannot be the end of a range; write \- for the character`)
		}
	}
	r.take()
	r.out.WriteByte(']')
}

// member writes a character or a class escape inside a class; isSet reports which.
func (r *patternReader) member(known sets) (isSet bool) {
	c := r.take()
	switch {
	case c == '\\' && strings.HasPrefix(r.text, "b"): // a backspace inside a class
		r.text = r.text[1:]
		r.character('\b')
	case c == '\\':
		set := r.escape(&known)
		r.out.WriteString(set)
		return set != ""
	case c == '[' && strings.HasPrefix(r.text, ":"):
		r.fail(`[:classes:] are not supported; write \[ for the character`)
	default:
		r.character(c)
	}
	return false
}
