package grammar

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// readPattern parses a schema's pattern in ECMA-262's syntax with the flag u. Validators
// in other languages read some parts of it differently, such as \d, $ and the dot. The
// strict reading contains only texts that match in every dialect, the loose one all that
// match in any.
func readPattern(text string, loose bool) (*pattern, error) {
	r := patternReader{text: text, loose: loose}
	p := r.alternatives()
	if r.err == nil && r.text != "" {
		r.fail("an unmatched ); write \\) for the character")
	}
	if r.err != nil {
		return nil, fmt.Errorf("pattern %.80q: %w", text, r.err)
	}
	p.size = r.size
	return p, nil
}

// The characters that the dot matches: in any dialect, and in all of them.
var (
	looseDot  = without(runeRange{'\n', '\n'})
	strictDot = without(runeRange{'\n', '\n'}, runeRange{'\r', '\r'}, runeRange{0x2028, 0x2029})
)

// maxSize limits the number of nodes and ranges of a pattern.
const maxSize = 1 << 16

type patternReader struct {
	text  string // unread text
	loose bool
	patternFlags
	depth int
	size  int
	err   error
}

// patternFlags are the flags of a part of a pattern.
type patternFlags struct {
	fold bool // upper and lower case are equal
	all  bool // the dot matches line feeds too
}

func (r *patternReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// grow counts nodes and ranges.
func (r *patternReader) grow(n int) {
	if r.size += n; r.size > maxSize {
		r.fail("%w: more than %d characters, classes and ranges", ErrTooLarge, maxSize)
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

func (r *patternReader) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(r.text, prefix)
	r.text = rest
	return ok
}

func (r *patternReader) alternatives() *pattern {
	if r.depth++; r.depth > maxDepth {
		r.fail("groups are nested deeper than %d", maxDepth)
	}
	defer func() { r.depth-- }()
	kids := []*pattern{r.sequence()}
	for r.err == nil && r.skip("|") {
		r.grow(1)
		kids = append(kids, r.sequence())
	}
	if len(kids) == 1 {
		return kids[0]
	}
	return alternate(kids...)
}

func (r *patternReader) sequence() *pattern {
	p := concat()
	for r.err == nil && r.text != "" && r.text[0] != '|' && r.text[0] != ')' {
		r.grow(1)
		one := r.atom()
		p.kids = append(p.kids, r.quantified(one))
	}
	if len(p.kids) == 1 {
		return p.kids[0]
	}
	return p
}

func (r *patternReader) atom() *pattern {
	switch c := r.take(); c {
	case '\\':
		return r.escape()
	case '[':
		return r.set(r.class())
	case '.':
		switch {
		case r.all:
			return r.set(anyRune)
		case r.loose:
			return r.set(looseDot)
		}
		return r.set(strictDot)
	case '(':
		return r.group()
	case '^':
		return &pattern{op: patternBegin}
	case '$':
		return r.end()
	case '*', '+', '?':
		r.fail(`%c repeats nothing; write \%c for the character`, c, c)
	case '{':
		switch {
		case strings.HasPrefix(r.text, ","):
			r.fail("{,n} is a repetition only in Python; write {0,n}")
		case len(r.text) > 0 && r.text[0] >= '0' && r.text[0] <= '9':
			r.fail(`{ repeats nothing; write \{ for the character`)
		}
		return setOf(runeRange{c, c})
	default:
		return setOf(r.folded([]runeRange{{c, c}}, r.loose)...)
	}
	return concat()
}

// end returns the end of the text. Python's $ also matches before a last line feed.
func (r *patternReader) end() *pattern {
	end := &pattern{op: patternEnd}
	if r.loose {
		return alternate(end, look(concat(setOf(runeRange{'\n', '\n'}), end), false, false))
	}
	return end
}

func (r *patternReader) set(ranges []runeRange) *pattern {
	r.grow(len(ranges))
	return setOf(ranges...)
}

func (r *patternReader) group() *pattern {
	before := r.patternFlags
	kind := r.groupKind()
	if r.err != nil || kind == "?)" { // flags apply to the rest of the group around them
		return concat()
	}
	not := strings.HasSuffix(kind, "!")
	if not {
		r.loose = !r.loose
	}
	p := r.alternatives()
	r.patternFlags = before
	if not {
		r.loose = !r.loose
	}
	if !r.skip(")") {
		r.fail("a group is not closed")
	}
	if kind == "?:" {
		return p
	}
	return look(p, not, strings.Contains(kind, "<"))
}

// quantified reads a quantifier after p, if there is one.
func (r *patternReader) quantified(p *pattern) *pattern {
	lo, hi := 1, 1
	switch {
	case r.skip("*"):
		lo, hi = 0, -1
	case r.skip("+"):
		lo, hi = 1, -1
	case r.skip("?"):
		lo, hi = 0, 1
	case strings.HasPrefix(r.text, "{"):
		var ok bool
		if lo, hi, ok = r.counts(); !ok {
			return p
		}
	default:
		return p
	}
	r.skip("?") // whether a repetition is lazy does not change what matches
	if strings.HasPrefix(r.text, "*") || strings.HasPrefix(r.text, "+") || strings.HasPrefix(r.text, "?") {
		r.fail("a repetition of a repetition is not supported; write (?:…) around the inner one")
	}
	return repeated(p, lo, hi)
}

// counts reads {n}, {n,} or {n,m}. Other text after a brace is literal.
func (r *patternReader) counts() (lo, hi int, ok bool) {
	inside, rest, closed := strings.Cut(r.text[1:], "}")
	if strings.HasPrefix(inside, ",") {
		r.fail("{,n} is a repetition only in Python; write {0,n}")
		return 0, 0, false
	}
	least, most, isRange := strings.Cut(inside, ",")
	lo, okLo := smallNumber(least)
	hi, okHi := smallNumber(most)
	switch {
	case !isRange:
		hi, okHi = lo, true
	case most == "":
		hi, okHi = -1, true
	}
	if !closed || strings.Trim(inside, "0123456789,") != "" || least == "" || strings.Contains(most, ",") {
		return 0, 0, false
	}
	if !okLo || !okHi || hi >= 0 && hi < lo {
		r.fail("{%.20s}: expected repetitions of at most %d, the smaller number first", inside, maxRepeat)
	}
	r.text = rest
	return lo, hi, true
}

// maxRepeat limits the numbers of a repetition, like Go's package regexp.
const maxRepeat = 1000

func smallNumber(text string) (int, bool) {
	n := 0
	for _, c := range text {
		if n = n*10 + int(c-'0'); n > maxRepeat {
			return 0, false
		}
	}
	return n, true
}
