package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenEnd tokenKind = iota // end of a tag or an expression
	tokenName
	tokenString
	tokenInt
	tokenFloat
	tokenOp
)

// A token is a token of an expression; text is its source text, or the value of a
// string.
type token struct {
	kind  tokenKind
	text  string
	value Value // of a number
	line  int
}

// operators lists the operators; longer ones come first.
var operators = []string{
	"//", "**", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";",
}

// token reads one token at the start of s.
func (l *lexer) token(s string) (t token, size int) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r):
		for n < len(s) {
			c, w := utf8.DecodeRuneInString(s[n:])
			if c != '_' && !unicode.IsLetter(c) && !unicode.In(c, unicode.Nd, unicode.Nl, unicode.Mn, unicode.Mc, unicode.Pc) {
				break
			}
			n += w
		}
		return token{kind: tokenName, text: s[:n]}, n
	case r >= '0' && r <= '9':
		return l.number(s)
	case r == '"' || r == '\'':
		return l.str(s)
	}
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			return token{kind: tokenOp, text: op}, len(op)
		}
	}
	l.fail("unexpected char %q", r)
	return token{}, 0
}

// number reads an integer or a float; underscores between digits are allowed.
func (l *lexer) number(s string) (token, int) {
	if len(s) > 1 && s[0] == '0' && strings.ContainsRune("bBoOxX", rune(s[1])) {
		n := 2
		for n < len(s) && (s[n] == '_' || isHex(s[n])) {
			n++
		}
		i, err := strconv.ParseInt(s[:n], 0, 64)
		if err != nil {
			l.fail("the number %.40s cannot be read", s[:n])
		}
		return token{kind: tokenInt, text: s[:n], value: i}, n
	}
	n := digits(s)
	kind := tokenInt
	if n+1 < len(s) && s[n] == '.' && isDigit(s[n+1]) && !l.afterDot() {
		n += 1 + digits(s[n+1:])
		kind = tokenFloat
	}
	if n+1 < len(s) && (s[n] == 'e' || s[n] == 'E') {
		m := n + 1
		if s[m] == '+' || s[m] == '-' {
			m++
		}
		if m < len(s) && isDigit(s[m]) {
			n = m + digits(s[m:])
			kind = tokenFloat
		}
	}
	text := strings.ReplaceAll(s[:n], "_", "")
	if kind == tokenFloat {
		f, _ := strconv.ParseFloat(text, 64) // out of range: infinity
		return token{kind: kind, text: s[:n], value: f}, n
	}
	if text[0] == '0' && strings.Trim(text, "0") != "" {
		l.fail("the number %.40s has leading zeros", text)
	}
	return token{kind: kind, text: s[:n], value: parseNumber(text)}, n
}

// afterDot reports whether the number is an index after a dot.
func (l *lexer) afterDot() bool { return l.at > 0 && l.src[l.at-1] == '.' }

// digits counts digits, including single underscores between them.
func digits(s string) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || s[n] == '_' && n+1 < len(s) && n > 0 && isDigit(s[n+1]) && s[n-1] != '_') {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// str reads a quoted string.
func (l *lexer) str(s string) (token, int) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return token{kind: tokenString, text: l.unescape(s[1:i])}, i + 1
		}
	}
	l.fail("the string does not end: %.20q", s)
	return token{}, 0
}

var simpleEscapes = map[byte]string{
	'n': "\n", 't': "\t", 'r': "\r", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\n': "",
}

// unescape decodes the escapes of a Python string.
func (l *lexer) unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if text, ok := simpleEscapes[s[i]]; ok {
			b.WriteString(text)
			continue
		}
		n := 0
		switch s[i] {
		case 'x':
			n = 2
		case 'u':
			n = 4
		case 'U':
			n = 8
		}
		switch {
		case n > 0:
			if i+n >= len(s) {
				l.fail(`the escape \%s is cut short`, s[i:])
			}
			code, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil || code > unicode.MaxRune {
				l.fail(`the escape \%s cannot be read`, s[i:i+1+n])
			}
			b.WriteRune(rune(code))
			i += n
		case s[i] >= '0' && s[i] <= '7':
			end := i
			for end < len(s) && end < i+3 && s[end] >= '0' && s[end] <= '7' {
				end++
			}
			code, _ := strconv.ParseUint(s[i:end], 8, 32) // at most three octal digits
			b.WriteRune(rune(code))
			i = end - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
