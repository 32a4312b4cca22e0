package syntax

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// Bounds of untrusted text: its bytes, because its modules take a thousand times as much
// memory, and the nesting of its brackets, because the parser is recursive.
const (
	maxText    = 16 << 20
	maxNesting = 64
)

// An Error is what is wrong at a place of a text.
type Error struct {
	Pos lexer.Position
	Msg string
}

// Error returns "file:line:col: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.Pos.Filename, e.Pos.Line, e.Pos.Column, e.Msg)
}

// Parse parses a file of modules. The error is an *Error.
func Parse(file string, src []byte) (*File, error) { return ParseFrom(file, 1, string(src)) }

// ParseFrom parses a part of a file of modules that begins at a line. The error is an *Error.
func ParseFrom(file string, line int, src string) (*File, error) {
	at := lexer.Position{Filename: file, Line: line, Column: 1}
	if len(src) > maxText {
		return nil, &Error{at, fmt.Sprintf("the text has more than %d bytes", maxText)}
	}
	if err := checkNesting(at, src); err != nil {
		return nil, err
	}
	lex, err := lexer.Upgrade(&scanner{src: src, at: at})
	if err != nil {
		return nil, syntaxError(file, err)
	}
	f, err := parser().ParseFromLexer(lex)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	return f, nil
}

// ParseExpr parses one expression. The error is an *Error.
func ParseExpr(src string) (*Expr, error) {
	at := lexer.Position{Line: 1, Column: 1}
	if err := checkNesting(at, src); err != nil {
		return nil, err
	}
	lex, err := lexer.Upgrade(&scanner{src: src, at: at})
	if err != nil {
		return nil, syntaxError("", err)
	}
	e := &Expr{}
	if err := e.Parse(lex); err != nil {
		return nil, syntaxError("", err)
	}
	if tok := lex.Peek(); !tok.EOF() {
		return nil, &Error{tok.Pos, fmt.Sprintf("unexpected token %q", tok.Value)}
	}
	return e, nil
}

// Unquote returns the text of a string in double or single quotes.
func Unquote(text string) (string, error) {
	if len(text) > 1 && text[0] == '\'' {
		return text[1 : len(text)-1], nil
	}
	return strconv.Unquote(text)
}

// grammarName matches names of the grammar in participle's messages.
var grammarName = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// syntaxError converts an error of participle to an Error.
func syntaxError(file string, err error) error {
	var pe participle.Error
	if !errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", file, err)
	}
	msg := strings.NewReplacer(`"\n"`, "end of line", "<eol>+", "end of line", "<eol>*", "", "<eol>", "end of line").Replace(pe.Message())
	if head, want, ok := strings.Cut(msg, " (expected "); ok {
		msg = head + " (expected " + grammarName.ReplaceAllStringFunc(want, func(s string) string { return "<" + strings.ToLower(s) + ">" })
	}
	at := pe.Position()
	if at.Filename == "" {
		at.Filename = file
	}
	if strings.Contains(msg, `token "<EOF>"`) {
		msg = "the text ends too early; a closing } may be missing" + strings.TrimPrefix(msg, `unexpected token "<EOF>"`)
	}
	return &Error{at, msg}
}

func checkNesting(at lexer.Position, src string) error {
	depth, line, col := 0, at.Line, 0
	inString, inComment := false, false
	for i := range len(src) {
		c := src[i]
		col++
		switch {
		case c == '\n':
			line, col, inString, inComment = line+1, 0, false, false
		case inComment:
		case c == '"' && !(inString && escaped(src, i)):
			inString = !inString
		case inString:
		case c == '#':
			inComment = true
		case c == '{' || c == '(' || c == '[':
			depth++
		case c == '}' || c == ')' || c == ']':
			depth--
		}
		if depth > maxNesting {
			return &Error{lexer.Position{Filename: at.Filename, Line: line, Column: col}, fmt.Sprintf("brackets nest deeper than %d", maxNesting)}
		}
	}
	return nil
}

// escaped reports whether an odd number of backslashes precedes the byte at i.
func escaped(src string, i int) bool {
	n := 0
	for i--; i >= 0 && src[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// QuoteName returns the name of a module as a text has it: in quotes if it is a keyword.
func QuoteName(name string) string {
	if name == "inf" || slices.Contains(keywords, name) {
		return strconv.Quote(name)
	}
	return name
}
