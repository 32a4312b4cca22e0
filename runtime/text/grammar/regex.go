package grammar

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode"
)

// A charset writes one character of a pattern: as it is, or as a character of a JSON
// string.
type charset func(b *builder, ranges []runeRange) part

func plainText(b *builder, ranges []runeRange) part { return b.runes(ranges) }

// unicodeEscape matches the code point escapes of JSON Schema patterns; Go's syntax is
// \x{…}.
var unicodeEscape = regexp.MustCompile(`\\u([0-9a-fA-F]{4})`)

// parseRegex parses a pattern in the syntax of package regexp, extended by \uXXXX.
func parseRegex(pattern string) (*syntax.Regexp, error) {
	if len(pattern) > maxSource {
		return nil, fmt.Errorf("%w: pattern has %d bytes", ErrTooLarge, len(pattern))
	}
	re, err := syntax.Parse(unicodeEscape.ReplaceAllString(pattern, `\x{$1}`), syntax.Perl)
	if err != nil {
		var e *syntax.Error
		if errors.As(err, &e) {
			return nil, fmt.Errorf("pattern %q: %s: %s; lookarounds and backreferences are not supported", pattern, e.Code, e.Expr)
		}
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return re, nil
}

// regex writes a pattern. With whole it must match the whole text; otherwise any part
// of it, as JSON Schema's pattern does.
func (b *builder) regex(pattern string, chars charset, whole bool) (part, error) {
	re, err := parseRegex(pattern)
	if err != nil {
		return part{}, err
	}
	w := regexWriter{b: b, chars: chars}
	p := w.anchored(re, whole)
	if w.err != nil {
		return part{}, fmt.Errorf("pattern %q: %w", pattern, w.err)
	}
	return p, nil
}

type regexWriter struct {
	b     *builder
	chars charset
	err   error
	depth int
}

// anchored writes a pattern with its anchors, which may occur at the ends of the
// pattern and of its alternatives.
func (w *regexWriter) anchored(re *syntax.Regexp, whole bool) part {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op == syntax.OpAlternate {
		var parts []part
		for _, sub := range re.Sub {
			parts = append(parts, w.anchored(sub, whole))
		}
		return w.b.alt(parts...)
	}
	list := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		list = re.Sub
	}
	begin, end := whole, whole
	for len(list) > 0 && isAnchor(list[0], syntax.OpBeginText, syntax.OpBeginLine) {
		begin, list = true, list[1:]
	}
	for len(list) > 0 && isAnchor(list[len(list)-1], syntax.OpEndText, syntax.OpEndLine) {
		end, list = true, list[:len(list)-1]
	}
	var parts []part
	if !begin {
		parts = append(parts, w.b.star(w.chars(w.b, anyRune)))
	}
	for _, sub := range list {
		parts = append(parts, w.write(sub))
	}
	if !end {
		parts = append(parts, w.b.star(w.chars(w.b, anyRune)))
	}
	return w.b.seq(parts...)
}

func isAnchor(re *syntax.Regexp, ops ...syntax.Op) bool { return slices.Contains(ops, re.Op) }

func (w *regexWriter) write(re *syntax.Regexp) part {
	b := w.b
	if w.depth++; w.depth > maxDepth {
		w.err = fmt.Errorf("%w: groups are nested deeper than %d", ErrTooLarge, maxDepth)
	}
	defer func() { w.depth-- }()
	if w.err != nil || b.err != nil {
		return b.empty()
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return b.empty()
	case syntax.OpNoMatch:
		return b.nothing()
	case syntax.OpLiteral:
		return w.literal(re)
	case syntax.OpCharClass:
		return w.chars(b, classOf(re.Rune))
	case syntax.OpAnyChar:
		return w.chars(b, anyRune)
	case syntax.OpAnyCharNotNL:
		return w.chars(b, without(runeRange{'\n', '\n'}))
	case syntax.OpCapture:
		return w.write(re.Sub[0])
	case syntax.OpStar:
		return b.star(w.write(re.Sub[0]))
	case syntax.OpPlus:
		return b.repeat(1, -1, func() part { return w.write(re.Sub[0]) })
	case syntax.OpQuest:
		return b.optional(w.write(re.Sub[0]))
	case syntax.OpRepeat:
		return b.repeat(re.Min, re.Max, func() part { return w.write(re.Sub[0]) })
	case syntax.OpConcat, syntax.OpAlternate:
		var parts []part
		for _, sub := range re.Sub {
			parts = append(parts, w.write(sub))
		}
		if re.Op == syntax.OpConcat {
			return b.seq(parts...)
		}
		return b.alt(parts...)
	}
	w.err = fmt.Errorf("%v is not at the start or end of the pattern", re)
	return b.empty()
}

func (w *regexWriter) literal(re *syntax.Regexp) part {
	p := w.b.empty()
	for _, r := range re.Rune {
		ranges := []runeRange{{r, r}}
		if re.Flags&syntax.FoldCase != 0 {
			ranges = foldings(r)
		}
		p = w.b.seq(p, w.chars(w.b, ranges))
	}
	return p
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
