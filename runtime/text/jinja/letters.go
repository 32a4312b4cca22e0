package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// upper is str.upper.
func upper(v Str) Str { return v.mapRunes(upperRune) }

func upperRune(r rune) string {
	if text, ok := upperLong[r]; ok {
		return text
	}
	return string(unicode.ToUpper(r))
}

// lower is str.lower; a capital sigma at the end of a word becomes a final sigma.
func lower(v Str) Str {
	at := 0
	return v.mapRunes(func(r rune) string {
		i := at
		at += utf8.RuneLen(r)
		switch r {
		case 'Σ':
			if finalSigma(v.s, i) {
				return "ς"
			}
		case 'İ':
			return "i\u0307"
		}
		return string(unicode.ToLower(r))
	})
}

// casefold is str.casefold, without folding ligatures.
func casefold(v Str) Str {
	return v.mapRunes(func(r rune) string {
		switch r {
		case 'ß', 'ẞ':
			return "ss"
		case 'ς':
			return "σ"
		}
		return string(unicode.ToLower(r))
	})
}

// finalSigma is Unicode's condition Final_Sigma: a cased letter precedes and none
// follows, skipping case-ignorable characters.
func finalSigma(s string, at int) bool {
	before := strings.TrimRightFunc(s[:at], caseIgnorable)
	r, n := utf8.DecodeLastRuneInString(before)
	if n == 0 || !cased(r) {
		return false
	}
	r, n = utf8.DecodeRuneInString(strings.TrimLeftFunc(s[at+len("Σ"):], caseIgnorable))
	return n == 0 || !cased(r)
}

func cased(r rune) bool {
	return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) || unicode.In(r, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func caseIgnorable(r rune) bool {
	return strings.ContainsRune("'.:·’‘․﹒＇．：", r) || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

// capitalize is str.capitalize: the first character in title case, the others in lower
// case.
func capitalize(v Str) Str {
	_, n := utf8.DecodeRuneInString(v.s)
	return concat(v.sub(0, n).mapRunes(titleRune), lower(v.sub(n, len(v.s))))
}

func titleRune(r rune) string {
	if text, ok := upperLong[r]; ok {
		_, n := utf8.DecodeRuneInString(text)
		return text[:n] + strings.ToLower(text[n:])
	}
	return string(unicode.ToTitle(r))
}

// titleCase is str.title: a cased letter after an uncased character starts a word.
func titleCase(v Str) Str {
	inWord, at := false, 0
	return v.mapRunes(func(r rune) string {
		was, i := inWord, at
		inWord = cased(r)
		at += utf8.RuneLen(r)
		if was && r == 'Σ' && finalSigma(v.s, i) {
			return "ς"
		}
		if was {
			return string(unicode.ToLower(r))
		}
		return titleRune(r)
	})
}

func swapcase(v Str) Str {
	return v.mapRunes(func(r rune) string {
		if unicode.IsUpper(r) {
			return string(unicode.ToLower(r))
		}
		return upperRune(r)
	})
}

func isUpper(s string) bool { return hasCase(s, unicode.IsUpper) }

func isLower(s string) bool { return hasCase(s, unicode.IsLower) }

// hasCase reports whether s has cased letters and all of them match is.
func hasCase(s string, is func(rune) bool) bool {
	found := false
	for _, r := range s {
		if cased(r) {
			if !is(r) {
				return false
			}
			found = true
		}
	}
	return found
}

func allRunes(s string, is func(rune) bool) bool {
	for _, r := range s {
		if !is(r) {
			return false
		}
	}
	return s != ""
}

func isLetter(r rune) bool { return unicode.IsLetter(r) }

func isAlnum(r rune) bool { return unicode.IsLetter(r) || isNumericRune(r) }

func isDecimalRune(r rune) bool { return unicode.Is(unicode.Nd, r) }

// isDigitRune also returns true for superscripts and similar digits.
func isDigitRune(r rune) bool {
	return unicode.Is(unicode.Nd, r) || strings.ContainsRune("²³¹⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", r)
}

func isNumericRune(r rune) bool { return unicode.In(r, unicode.Nd, unicode.Nl, unicode.No) }

func isIdentifier(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc)) {
			return false
		}
	}
	return s != ""
}
