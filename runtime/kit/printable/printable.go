// Package printable makes text of files and servers safe to print.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text in which nothing is left that a terminal obeys: control characters
// other than line feeds and tabs, marks that change the direction of writing, and bytes
// that are no UTF-8 are escaped as in Go.
func Text(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, obeyed) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || obeyed(r) {
			quoted := strconv.QuoteToASCII(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// maxMessage is the most bytes of a message; a list of all families has a few thousand.
const maxMessage = 8 << 10

// Message returns the text of a message, which may repeat a part of a file, without its
// middle if it is too long to be read.
func Message(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage/2] + " … " + s[len(s)-maxMessage/2:]
	}
	return Text(s)
}

// obeyed reports whether a terminal obeys a character instead of showing it.
func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}
