package jinja

import (
	"strings"
	"unicode"
)

// A section is a part of a template: text, a printed expression or a tag.
type section struct {
	kind   sectionKind
	text   string  // sectionText
	tokens []token // of an expression or a tag, followed by an end token
	line   int
}

type sectionKind int

const (
	sectionText sectionKind = iota
	sectionPrint
	sectionTag
)

// A lexer splits a template into sections.
type lexer struct {
	src       string
	at        int
	line      int
	lineStart bool // the last character read ends a line
	out       []section
}

// lex follows Jinja's lexer with trim_blocks and lstrip_blocks: it removes the line
// feed after a tag or comment, and the white space before one that is first on its
// line.
func lex(src string) []section {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	src = strings.TrimSuffix(src, "\n")
	l := &lexer{src: src, line: 1, lineStart: true}
	for l.at < len(l.src) {
		l.next()
	}
	return l.out
}

// next reads text up to an opening bracket, and the section that it opens.
func (l *lexer) next() {
	open := l.opening()
	text := l.src[l.at:open]
	if open == len(l.src) {
		l.text(text)
		l.advance(open)
		return
	}
	sign := byte(0)
	if open+2 < len(l.src) && (l.src[open+2] == '-' || l.src[open+2] == '+') {
		sign = l.src[open+2]
	}
	l.text(l.strip(text, sign, l.src[open+1] == '{'))
	l.advance(open)
	body := open + 2
	if sign != 0 {
		body++
	}
	switch l.src[open+1] {
	case '#':
		l.comment(body)
	case '%':
		if end := l.rawTag(body); end >= 0 {
			l.raw(end)
			return
		}
		l.code(sectionTag, body)
	default:
		l.code(sectionPrint, body)
	}
}

// opening returns the index of the next opening bracket.
func (l *lexer) opening() int {
	for i := l.at; i+1 < len(l.src); i++ {
		if l.src[i] == '{' && (l.src[i+1] == '{' || l.src[i+1] == '%' || l.src[i+1] == '#') {
			return i
		}
	}
	return len(l.src)
}

// strip removes white space before an opening bracket.
func (l *lexer) strip(text string, sign byte, prints bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, isSpace)
	}
	if sign == '+' || prints {
		return text
	}
	start := strings.LastIndexByte(text, '\n') + 1
	if (start > 0 || l.lineStart) && strings.TrimLeftFunc(text[start:], isSpace) == "" {
		return text[:start]
	}
	return text
}

// text appends a text section; advance counts its lines.
func (l *lexer) text(s string) {
	if s != "" {
		l.out = append(l.out, section{kind: sectionText, text: s, line: l.line})
	}
}

// advance moves to a byte offset and counts the lines.
func (l *lexer) advance(to int) {
	passed := l.src[l.at:to]
	l.line += strings.Count(passed, "\n")
	if passed != "" {
		l.lineStart = strings.HasSuffix(passed, "\n")
	}
	l.at = to
}

// comment skips a comment.
func (l *lexer) comment(body int) {
	n := strings.Index(l.src[body:], "#}")
	if n < 0 {
		l.fail("the comment does not end: #} is missing")
	}
	end := body + n
	sign := byte(0)
	if end > body {
		sign = l.src[end-1]
	}
	l.advance(l.after(end+2, sign, true))
}

// after returns the offset at which text continues after a closing bracket.
func (l *lexer) after(end int, sign byte, trim bool) int {
	switch {
	case sign == '-':
		return len(l.src) - len(strings.TrimLeftFunc(l.src[end:], isSpace))
	case sign != '+' && trim && strings.HasPrefix(l.src[end:], "\n"):
		return end + 1
	}
	return end
}

// rawTag recognizes the rest of {% raw %}. It returns the start of the text, or -1 for
// another tag.
func (l *lexer) rawTag(body int) int {
	rest := strings.TrimLeftFunc(l.src[body:], isSpace)
	if !strings.HasPrefix(rest, "raw") {
		return -1
	}
	rest = strings.TrimLeftFunc(rest[len("raw"):], isSpace)
	switch {
	case strings.HasPrefix(rest, "-%}"):
		return l.after(len(l.src)-len(rest)+3, '-', false)
	case strings.HasPrefix(rest, "%}"):
		return len(l.src) - len(rest) + 2
	}
	return -1
}

// raw reads everything up to {% endraw %} as text.
func (l *lexer) raw(begin int) {
	l.advance(begin)
	for i := begin; ; i++ {
		n := strings.Index(l.src[i:], "{%")
		if n < 0 {
			l.fail("{%% raw %%} does not end: {%% endraw %%} is missing")
		}
		i += n
		body, sign := i+2, byte(0)
		if body < len(l.src) && (l.src[body] == '-' || l.src[body] == '+') {
			sign = l.src[body]
			body++
		}
		rest := strings.TrimLeftFunc(l.src[body:], isSpace)
		if !strings.HasPrefix(rest, "endraw") {
			continue
		}
		rest = strings.TrimLeftFunc(rest[len("endraw"):], isSpace)
		at := len(l.src) - len(rest)
		closing, ok := closeBracket(rest, "%}")
		if !ok {
			continue
		}
		l.text(l.strip(l.src[begin:i], sign, false))
		l.advance(l.after(at+closing, rest[0], true))
		return
	}
}

// closeBracket recognizes a closing bracket with its sign and returns its length.
func closeBracket(s, bracket string) (size int, ok bool) {
	if strings.HasPrefix(s, bracket) {
		return len(bracket), true
	}
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') && strings.HasPrefix(s[1:], bracket) {
		return len(bracket) + 1, true
	}
	return 0, false
}

// code reads the tokens of a tag or an expression.
func (l *lexer) code(kind sectionKind, body int) {
	bracket := "%}"
	if kind == sectionPrint {
		bracket = "}}"
	}
	sec := section{kind: kind, line: l.line}
	l.advance(body)
	depth := ""
	for {
		rest := l.src[l.at:]
		trimmed := strings.TrimLeftFunc(rest, isSpace)
		l.advance(len(l.src) - len(trimmed))
		if trimmed == "" {
			l.fail("%s is missing", bracket)
		}
		if size, ok := closeBracket(trimmed, bracket); ok && depth == "" && !(kind == sectionPrint && trimmed[0] == '+') {
			sec.tokens = append(sec.tokens, token{kind: tokenEnd, text: bracket, line: l.line})
			l.out = append(l.out, sec)
			l.advance(l.after(l.at+size, trimmed[0], kind == sectionTag))
			return
		}
		t, size := l.token(trimmed)
		t.line = l.line
		depth = l.balance(depth, t)
		sec.tokens = append(sec.tokens, t)
		l.advance(l.at + size)
	}
}

// balance updates the stack of closing brackets that are due in a tag.
func (l *lexer) balance(depth string, t token) string {
	if t.kind != tokenOp {
		return depth
	}
	switch t.text {
	case "(":
		return depth + ")"
	case "[":
		return depth + "]"
	case "{":
		return depth + "}"
	case ")", "]", "}":
		if depth == "" {
			l.fail("unexpected %q", t.text)
		}
		if want := depth[len(depth)-1:]; want != t.text {
			l.fail("unexpected %q, expected %q", t.text, want)
		}
		return depth[:len(depth)-1]
	}
	return depth
}

func (l *lexer) fail(format string, args ...any) {
	defer func() {
		f := recover().(failure)
		f.err.Line = l.line
		panic(f)
	}()
	fail(format, args...)
}

// isSpace reports white space as Python's str.isspace does.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
}
