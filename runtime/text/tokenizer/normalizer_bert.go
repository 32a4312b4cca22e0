package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// bertNormalizer is the cleaning of BERT's BasicTokenizer (Devlin et al. 2018,
// tokenization.py), in Hugging Face's order.
type bertNormalizer struct {
	clean, chinese, accents, lower bool
}

func newBertNormalizer(c *Component) *bertNormalizer {
	n := &bertNormalizer{clean: orTrue(c.CleanText), chinese: orTrue(c.HandleChineseChars), lower: orTrue(c.Lowercase)}
	n.accents = n.lower
	if c.StripAccents != nil {
		n.accents = *c.StripAccents
	}
	return n
}

func (n *bertNormalizer) normalize(s string) string {
	if n.clean {
		s = strings.Map(cleanRune, s)
	}
	if n.chinese {
		s = spaceAroundHan(s)
	}
	if n.accents {
		s = stripMarks(normalForm(norm.NFD).normalize(s), bertMarkClass())
	}
	if n.lower {
		s = lowercase(s)
	}
	return s
}

func (n *bertNormalizer) dropsHead(s string) bool {
	r, size := utf8.DecodeRuneInString(s)
	return size > 0 && (n.clean && cleanRune(r) < 0 || n.accents && bertMarkClass().Has(r))
}

// cleanRune removes control characters and replaces white space by a space.
func cleanRune(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return ' '
	case bertControlClass().Has(r):
		return -1
	case r > unicode.MaxASCII && isSpace(r):
		return ' '
	}
	return r
}

func spaceAroundHan(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 0x3400 && isHan(r) {
			if b.Len() == 0 {
				b.Grow(2 * len(s))
				b.WriteString(s[:i])
			}
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		if b.Len() > 0 {
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return s
	}
	return b.String()
}

// isHan reports whether r is in a CJK block listed in BERT's tokenization.py.
func isHan(r rune) bool {
	switch {
	case r >= 0x4e00 && r <= 0x9fff, r >= 0x3400 && r <= 0x4dbf, r >= 0x20000 && r <= 0x2a6df,
		r >= 0x2a700 && r <= 0x2b73f, r >= 0x2b740 && r <= 0x2b81f, r >= 0x2b920 && r <= 0x2ceaf,
		r >= 0xf900 && r <= 0xfaff, r >= 0x2f800 && r <= 0x2fa1f:
		return true
	}
	return false
}
