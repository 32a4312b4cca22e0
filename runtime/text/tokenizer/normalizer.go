package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/regexp"
	"golang.org/x/text/unicode/norm"
)

// normalizer rewrites text before it is split.
type normalizer interface {
	normalize(s string) string
}

// normalizeFunc is a normalizer without state.
type normalizeFunc func(string) string

func (f normalizeFunc) normalize(s string) string { return f(s) }

type normalizerSequence []normalizer

func (q normalizerSequence) normalize(s string) string {
	for _, n := range q {
		s = n.normalize(s)
	}
	return s
}

// A headDropper is a normalizer that may remove characters from the start of a text.
// Then the remaining text does not count as the start of the input, which determines
// the prefix of the first word.
type headDropper interface {
	dropsHead(s string) bool
}

func (q normalizerSequence) dropsHead(s string) bool {
	for _, n := range q {
		if d, ok := n.(headDropper); ok && d.dropsHead(s) {
			return true
		}
		s = n.normalize(s)
	}
	return false
}

// dropsHead reports whether n removes the first character of s.
func dropsHead(n normalizer, s string) bool {
	d, ok := n.(headDropper)
	return ok && d.dropsHead(s)
}

// filter is a normalizer for single characters. keep maps a character to its
// replacement, or to -1 to remove it.
type filter func(r rune) rune

func (f filter) normalize(s string) string { return strings.Map(f, s) }

func (f filter) dropsHead(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && f(r) < 0
}

const maxComponentDepth = 16

// buildNormalizer returns a normalizer; for nil the identity.
func buildNormalizer(c *Component, depth int) (normalizer, error) {
	if c == nil {
		return normalizerSequence{}, nil
	}
	if depth > maxComponentDepth {
		return nil, fmt.Errorf("normalizer: sequences nest deeper than %d", maxComponentDepth)
	}
	switch c.Type {
	case "Sequence":
		var q normalizerSequence
		for i := range c.Normalizers {
			n, err := buildNormalizer(&c.Normalizers[i], depth+1)
			if err != nil {
				return nil, err
			}
			q = append(q, n)
		}
		return q, nil
	case "NFC":
		return normalForm(norm.NFC), nil
	case "NFD":
		return normalForm(norm.NFD), nil
	case "NFKC":
		return normalForm(norm.NFKC), nil
	case "NFKD":
		return normalForm(norm.NFKD), nil
	case "Lowercase":
		return normalizeFunc(lowercase), nil
	case "StripAccents":
		return filter(withoutMarks(accentClass())), nil
	case "Strip":
		return stripper{c.StripLeft, c.StripRight}, nil
	case "Prepend":
		return prependNormalizer(c.Prepend), nil
	case "Replace":
		return newReplacer(c)
	case "BertNormalizer":
		return newBertNormalizer(c), nil
	case "Precompiled":
		return newCharsmap(c.Charsmap)
	case "ByteLevel":
		return normalizeFunc(ByteAlphabet), nil
	case "Nmt":
		return filter(nmtClean), nil
	}
	return nil, fmt.Errorf("normalizer.type %q is not known", c.Type)
}

// normalForm applies a Unicode normal form, but leaves characters newer than the
// reference's tables unchanged.
func normalForm(form norm.Form) normalizer {
	return normalizeFunc(func(s string) string {
		if form.IsNormalString(s) {
			return s
		}
		var b strings.Builder
		done := 0
		for i, r := range s {
			if r < 0x32ff || !undecomposedClass().Has(r) {
				continue
			}
			end := i + regexp.RuneLen(s, i)
			b.WriteString(form.String(s[done:i]))
			b.WriteString(s[i:end])
			done = end
		}
		if done == 0 {
			return form.String(s)
		}
		b.WriteString(form.String(s[done:]))
		return b.String()
	})
}

// lowercase converts to lower case rune by rune. It applies the one unconditional
// special case of full case mapping: İ becomes i and a combining dot.
func lowercase(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		if r == 'İ' {
			b.WriteString("i\u0307")
			continue
		}
		b.WriteRune(lowerRune(r))
	}
	return b.String()
}

func lowerRune(r rune) rune {
	low := unicode.ToLower(r)
	if low != r || r < lowerAdded[0][0] {
		return low
	}
	for _, run := range lowerAdded {
		if r >= run[0] && r <= run[1] {
			return r + run[2]
		}
	}
	return r
}

// stripMarks removes the characters of a class.
func stripMarks(s string, marks *regexp.Class) string { return strings.Map(withoutMarks(marks), s) }

func withoutMarks(marks *regexp.Class) func(rune) rune {
	return func(r rune) rune {
		if r > unicode.MaxASCII && marks.Has(r) {
			return -1
		}
		return r
	}
}

// stripper removes white space at the ends.
type stripper struct{ left, right bool }

func (t stripper) normalize(s string) string {
	if t.left {
		s = strings.TrimLeftFunc(s, isSpace)
	}
	if t.right {
		s = strings.TrimRightFunc(s, isSpace)
	}
	return s
}

func (t stripper) dropsHead(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return t.left && n > 0 && isSpace(r)
}

func prependNormalizer(prefix string) normalizer {
	return normalizeFunc(func(s string) string {
		if s == "" {
			return s
		}
		return prefix + s
	})
}

// nmtClean removes control characters and replaces unusual spaces by plain ones
// (SentencePiece's "nmt" rules).
func nmtClean(r rune) rune {
	switch {
	case r >= 1 && r <= 8, r == 0xb, r >= 0xe && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
		return -1
	case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200b && r <= 0x200f,
		r == 0x2028, r == 0x2029, r == 0x2581, r == 0xfeff, r == 0xfffd:
		return ' '
	}
	return r
}

// replacer replaces a string or the matches of a regular expression.
type replacer struct {
	literal string
	re      *regexp.Regexp
	content string
}

func newReplacer(c *Component) (*replacer, error) {
	r := &replacer{content: c.Content}
	switch {
	case c.Pattern != nil && c.Pattern.String != nil:
		r.literal = *c.Pattern.String
	case c.Pattern != nil && c.Pattern.Regex != nil:
		re, err := regexp.Compile(*c.Pattern.Regex)
		if err != nil {
			return nil, err
		}
		r.re = re
	default:
		return nil, fmt.Errorf("Replace needs a pattern with the key String or Regex")
	}
	return r, nil
}

func (r *replacer) normalize(s string) string {
	if r.re == nil {
		if r.literal == "" {
			return s
		}
		return strings.ReplaceAll(s, r.literal, r.content)
	}
	var b strings.Builder
	done := 0
	for _, m := range r.re.FindAll(s) {
		b.WriteString(s[done:m.Start])
		b.WriteString(r.content)
		done = m.End
	}
	b.WriteString(s[done:])
	return b.String()
}
