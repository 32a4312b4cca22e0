package grammar

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// A charset adds to a part one character: as it is, or as a character of a JSON string.
type charset func(b *builder, p part, ranges []runeRange)

func plainText(b *builder, p part, ranges []runeRange) { b.runesInto(p, ranges) }

// escapes matches the escapes of a pattern.
var escapes = regexp.MustCompile(`(?s)\\(u[0-9a-fA-F]{4}|.)`)

// codePoints returns a pattern in which \uXXXX is written as \x{XXXX}, as package regexp
// expects.
func codePoints(pattern string) string {
	return escapes.ReplaceAllStringFunc(pattern, func(escape string) string {
		if hex, isCode := strings.CutPrefix(escape, `\u`); isCode && hex != "" {
			return `\x{` + hex + `}`
		}
		return escape
	})
}

// parseRegex parses a pattern in the syntax of package regexp, extended by \uXXXX.
func parseRegex(pattern string) (*syntax.Regexp, error) {
	if len(pattern) > maxSource {
		return nil, fmt.Errorf("%w: pattern has %d bytes", ErrTooLarge, len(pattern))
	}
	re, err := syntax.Parse(codePoints(pattern), syntax.Perl)
	if err != nil {
		var e *syntax.Error
		if errors.As(err, &e) {
			return nil, fmt.Errorf("pattern %q: %s: %s; lookarounds and backreferences are not supported", pattern, e.Code, e.Expr)
		}
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return re, nil
}

// regex returns the pattern of a regular expression in the syntax of package regexp.
func regex(text string) (*pattern, error) {
	re, err := parseRegex(text)
	if err != nil {
		return nil, err
	}
	p, err := fromSyntax(re, 0)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", text, err)
	}
	return p, nil
}

// fromSyntax converts a pattern of package regexp/syntax.
func fromSyntax(re *syntax.Regexp, depth int) (*pattern, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: groups are nested deeper than %d", ErrTooLarge, maxDepth)
	}
	var kids []*pattern
	for _, sub := range re.Sub {
		kid, err := fromSyntax(sub, depth+1)
		if err != nil {
			return nil, err
		}
		kids = append(kids, kid)
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return concat(), nil
	case syntax.OpNoMatch:
		return alternate(), nil
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			ranges := []runeRange{{r, r}}
			if re.Flags&syntax.FoldCase != 0 {
				ranges = foldings(r)
			}
			kids = append(kids, setOf(ranges...))
		}
		return concat(kids...), nil
	case syntax.OpCharClass:
		return setOf(classOf(re.Rune)...), nil
	case syntax.OpAnyChar:
		return setOf(anyRune...), nil
	case syntax.OpAnyCharNotNL:
		return setOf(without(runeRange{'\n', '\n'})...), nil
	case syntax.OpCapture:
		return kids[0], nil
	case syntax.OpStar:
		return repeated(kids[0], 0, -1), nil
	case syntax.OpPlus:
		return repeated(kids[0], 1, -1), nil
	case syntax.OpQuest:
		return repeated(kids[0], 0, 1), nil
	case syntax.OpRepeat:
		return repeated(kids[0], re.Min, re.Max), nil
	case syntax.OpConcat:
		return concat(kids...), nil
	case syntax.OpAlternate:
		return alternate(kids...), nil
	case syntax.OpBeginText, syntax.OpBeginLine:
		return &pattern{op: patternBegin}, nil
	case syntax.OpEndText, syntax.OpEndLine:
		return &pattern{op: patternEnd}, nil
	}
	return nil, fmt.Errorf("%v is not supported", re)
}

// pattern writes a pattern that a text must contain or, with whole, match. It reports
// false if the pattern has look-around, or an anchor that is not at the start or the end
// of the pattern or of its alternatives.
func (b *builder) pattern(p *pattern, chars charset, whole bool) (part, bool) {
	if p.op == patternAlternate && len(p.kids) > 0 {
		var parts []part
		for _, kid := range p.kids {
			one, ok := b.pattern(kid, chars, whole)
			if !ok {
				return part{}, false
			}
			parts = append(parts, one)
		}
		return b.alt(parts...), true
	}
	list := []*pattern{p}
	if p.op == patternConcat {
		list = p.kids
	}
	begin, end := whole, whole
	for len(list) > 0 && list[0].op == patternBegin {
		begin, list = true, list[1:]
	}
	for len(list) > 0 && list[len(list)-1].op == patternEnd {
		end, list = true, list[:len(list)-1]
	}
	var parts []part
	if !begin {
		parts = append(parts, b.star(b.set(anyRune, chars)))
	}
	for _, kid := range list {
		if kid.has(patternLook, patternBegin, patternEnd) {
			return part{}, false
		}
		parts = append(parts, b.inner(kid, chars))
	}
	if !end {
		parts = append(parts, b.star(b.set(anyRune, chars)))
	}
	return b.seq(parts...), true
}

func (b *builder) set(ranges []runeRange, chars charset) part {
	p := b.nothing()
	chars(b, p, ranges)
	return p
}

// inner writes a pattern without anchors and look-around.
func (b *builder) inner(p *pattern, chars charset) part {
	if b.err != nil {
		return b.empty()
	}
	var parts []part
	switch p.op {
	case patternSet:
		return b.set(p.ranges, chars)
	case patternRepeat:
		return b.repeat(p.lo, p.hi, func() part { return b.inner(p.kids[0], chars) })
	}
	for _, kid := range p.kids {
		parts = append(parts, b.inner(kid, chars))
	}
	if p.op == patternAlternate {
		return b.alt(parts...)
	}
	return b.seq(parts...)
}

func classOf(pairs []rune) []runeRange {
	var out []runeRange
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, runeRange{pairs[i], pairs[i+1]})
	}
	return out
}

// foldings returns the characters that differ from r only in case.
func foldings(r rune) []runeRange {
	out := []runeRange{{r, r}}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		out = append(out, runeRange{f, f})
	}
	return out
}
