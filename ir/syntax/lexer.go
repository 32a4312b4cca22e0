package syntax

import (
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// The types of tokens.
const (
	tokEOL lexer.TokenType = -2 - iota
	tokNumber
	tokIdent
	tokKeyword
	tokString
	tokValue
	tokWeight
	tokConfig
	tokAnnotation
	tokPunct
)

// symbols are the names of the types in the grammar.
var symbols = map[string]lexer.TokenType{
	"EOF": lexer.EOF, "EOL": tokEOL, "Number": tokNumber, "Ident": tokIdent, "Keyword": tokKeyword, "String": tokString,
	"Value": tokValue, "Weight": tokWeight, "Config": tokConfig, "Annotation": tokAnnotation, "Punct": tokPunct,
}

// keywords are the words that begin a statement or a part of one. No name of a module is one
// of them without quotes.
var keywords = []string{"module", "param", "given", "use", "check", "weight", "state", "graph", "input", "yield", "from", "repeat", "fuse", "par", "if", "elif", "else", "for", "as"}

// operators are the longest first.
var operators = []string{"..", ">=", "<=", "==", "!=", "//"}

// A definition makes lexers. Written by hand it takes a quarter of the time of participle's,
// which matches regular expressions.
type definition struct{}

func (definition) Symbols() map[string]lexer.TokenType { return symbols }

// Lex is what participle asks of a definition; ParseFrom makes a scanner itself, for its line.
func (definition) Lex(file string, r io.Reader) (lexer.Lexer, error) {
	src, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return &scanner{src: string(src), at: lexer.Position{Filename: file, Line: 1, Column: 1}}, nil
}

// A scanner splits a text into tokens. The newlines between two others are one, because they end
// a statement, except within parentheses and square brackets.
type scanner struct {
	src     string
	at      lexer.Position
	open    []byte // brackets that are open
	operand bool   // the last token ends an operand
	behind  bool   // the last token is not a newline
}

func (s *scanner) Next() (lexer.Token, error) {
	s.space()
	rest := s.src[s.at.Offset:]
	if rest == "" {
		return lexer.EOFToken(s.at), nil
	}
	at := s.at
	typ, n := s.scan(rest)
	if n == 0 {
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		return lexer.Token{}, participle.Errorf(s.at, "unexpected text %q", strings.ToValidUTF8(rest[:min(end, 16)], "�"))
	}
	t := lexer.Token{Type: typ, Value: rest[:n], Pos: at}
	s.behind = typ != tokEOL
	s.operand = typ == tokNumber || typ == tokIdent && !slices.Contains(reserved, t.Value) || typ == tokValue || t.Value == ")" || t.Value == "]"
	s.advance(n)
	return t, nil
}

func (s *scanner) advance(n int) {
	s.at.Offset += n
	s.at.Column += n
}

// inside reports whether the innermost open bracket is one of those.
func (s *scanner) inside(brackets string) bool {
	n := len(s.open)
	return n > 0 && strings.IndexByte(brackets, s.open[n-1]) >= 0
}

// space skips white space and comments.
func (s *scanner) space() {
	for s.at.Offset < len(s.src) {
		switch c := s.src[s.at.Offset]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.advance(1)
		case c == '\n' && (!s.behind || s.inside("([") || continues(s.src[s.at.Offset+1:])):
			s.at.Offset, s.at.Line, s.at.Column = s.at.Offset+1, s.at.Line+1, 1
		case c == '#':
			n := strings.IndexByte(s.src[s.at.Offset:], '\n')
			if n < 0 {
				n = len(s.src) - s.at.Offset
			}
			s.advance(n)
		default:
			return
		}
	}
}

// continues reports whether a line continues the one before: it begins with from or else,
// which begin no statement.
func continues(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return strings.HasPrefix(line, "from ") || strings.HasPrefix(line, "else ")
}

// scan returns the type and length of the token at the beginning of a text; 0 if there is none.
func (s *scanner) scan(rest string) (lexer.TokenType, int) {
	c := rest[0]
	switch {
	case c == '\n':
		s.at.Line, s.at.Column = s.at.Line+1, 0 // advance makes it 1
		return tokEOL, 1
	case isDigit(c):
		return tokNumber, number(rest)
	case isLetter(c):
		n := word(rest)
		switch {
		case rest[:n] == "inf":
			return tokNumber, n
		case slices.Contains(keywords, rest[:n]):
			return tokKeyword, n
		}
		return tokIdent, n
	case c == '"':
		return tokString, quoted(rest)
	case c == '\'':
		if n := strings.IndexByte(rest[1:], c); n >= 0 {
			return tokString, n + 2
		}
		return tokString, 0
	case c == '%' && s.operand && slices.Contains(s.open, '['): // modulo
		return tokPunct, 1
	case c == '%':
		return tokValue, name(rest)
	case c == '@':
		return tokWeight, name(rest)
	case c == '$':
		return tokConfig, nested(rest)
	case c == '!' && !strings.HasPrefix(rest, "!="):
		return tokAnnotation, prefixed(rest)
	}
	return tokPunct, s.punct(rest)
}

// punct returns the length of an operator or bracket.
func (s *scanner) punct(rest string) int {
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			return len(op)
		}
	}
	switch c := rest[0]; c {
	case '(', '[', '{':
		s.open = append(s.open, c)
	case ')', ']', '}':
		if n := len(s.open); n > 0 {
			s.open = s.open[:n-1]
		}
	case '-', '+', '*', '/', '=', '<', '>', ':', ',', '|', '?', '.':
	default:
		return 0
	}
	return 1
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func word(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n])) {
		n++
	}
	return n
}

// prefixed returns the length of a sign with a word behind it.
func prefixed(s string) int {
	if len(s) < 2 || !isLetter(s[1]) {
		return 0
	}
	return 1 + word(s[1:])
}

// nested returns the length of a sign with words or numbers behind it, between which are dots.
func nested(s string) int {
	n := prefixed(s)
	for n > 0 && n+1 < len(s) && s[n] == '.' && word(s[n+1:]) > 0 {
		n += 1 + word(s[n+1:])
	}
	return n
}

// name returns the length of a sign with words behind it, between which are dots.
func name(s string) int {
	n := 1
	for {
		w := word(s[n:])
		if w == 0 {
			if n == 1 {
				return 0
			}
			return n - 1 // the dot belongs to what follows
		}
		if n += w; n == len(s) || s[n] != '.' {
			return n
		}
		n++
	}
}

// number returns the length of digits, a fraction and an exponent.
func number(s string) int {
	digits := func(n int) int {
		for n < len(s) && isDigit(s[n]) {
			n++
		}
		return n
	}
	n := digits(0)
	if n+1 < len(s) && s[n] == '.' && isDigit(s[n+1]) {
		n = digits(n + 1)
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		k := n + 1
		if k < len(s) && (s[k] == '-' || s[k] == '+') {
			k++
		}
		if k < len(s) && isDigit(s[k]) {
			n = digits(k)
		}
	}
	return n
}

// quoted returns the length of a string in quotes; 0 if its end is missing.
func quoted(s string) int {
	for n := 1; n < len(s) && s[n] != '\n'; n++ {
		switch s[n] {
		case '\\':
			n++
		case '"':
			return n + 1
		}
	}
	return 0
}
