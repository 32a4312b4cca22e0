package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// graphemeLen returns the length in bytes of the first extended grapheme cluster of s
// (UAX #29). It does not join clusters at ZWJ, regional indicators or Indic conjuncts,
// because the only caller treats clusters of 6 or more bytes as single characters
// anyway.
func graphemeLen(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if r == '\r' && len(s) > 1 && s[1] == '\n' {
		return 2
	}
	if isGraphemeControl(r) {
		return n
	}
	for n < len(s) {
		if s[n] < utf8.RuneSelf && !isPrepend(r) {
			break
		}
		next, w := utf8.DecodeRuneInString(s[n:])
		if isGraphemeControl(next) || !(isPrepend(r) || isExtend(next) || hangulJoins(r, next)) {
			break
		}
		n += w
		r = next
	}
	return n
}

func isGraphemeControl(r rune) bool {
	if r < 0x20 || (r >= 0x7f && r < 0xa0) {
		return true
	}
	return r > 0xa0 && r != 0x200c && r != 0x200d && !isPrepend(r) && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

func isExtend(r rune) bool {
	return r >= 0x300 && (unicode.In(r, unicode.M, unicode.Other_Grapheme_Extend) || r == 0x200d || r == 0xe33 || r == 0xeb3 || (r >= 0x1f3fb && r <= 0x1f3ff))
}

func isPrepend(r rune) bool {
	return r >= 0x600 && unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// hangulJoins implements rules GB6 to GB8.
func hangulJoins(a, b rune) bool {
	switch hangulType(a) {
	case 'L':
		return hangulType(b) == 'L' || hangulType(b) == 'V' || hangulType(b) == 'S' || hangulType(b) == 's'
	case 'V', 's':
		return hangulType(b) == 'V' || hangulType(b) == 'T'
	case 'T', 'S':
		return hangulType(b) == 'T'
	}
	return false
}

// hangulType returns L, V, T, s (syllable LV), S (syllable LVT) or 0.
func hangulType(r rune) byte {
	switch {
	case r >= 0x1100 && r <= 0x115f, r >= 0xa960 && r <= 0xa97c:
		return 'L'
	case r >= 0x1160 && r <= 0x11a7, r >= 0xd7b0 && r <= 0xd7c6:
		return 'V'
	case r >= 0x11a8 && r <= 0x11ff, r >= 0xd7cb && r <= 0xd7fb:
		return 'T'
	case r >= 0xac00 && r <= 0xd7a3:
		if (r-0xac00)%28 == 0 {
			return 's'
		}
		return 'S'
	}
	return 0
}
