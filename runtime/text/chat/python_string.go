package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// string reads a part of a string. Models do not always escape quotes, so a quote ends
// the string only before a comma, a colon, a closing bracket or the end.
func (v *pythonValue) string(text string, last bool) (n int, ended bool) {
	special := v.quote[:1]
	if v.quote != v.mark {
		special += `\`
	}
	if v.close != "" {
		special += v.close[:1]
	}
	if n = strings.IndexAny(text, special); n != 0 {
		if n < 0 {
			n = len(text)
		}
		v.out.WriteString(escapeJSON(text[:n]))
		return n, false
	}
	switch s := v.atClose(text, last); {
	case s == bodyWaiting:
		return 0, false
	case s == bodyMoved:
		v.out.WriteByte('"')
		v.after()
		return 0, v.finish()
	case text[0] == '\\':
		return v.escape(text, last), false
	case text[0] == v.quote[0]:
		switch v.endsString(text, last) {
		case bodyWaiting:
			return 0, false
		case bodyMoved:
			v.out.WriteByte('"')
			return len(v.quote), v.after()
		}
	}
	v.out.WriteString(escapeJSON(text[:1]))
	return 1, false
}

// endsString reports whether the quote at the start of text ends the string.
func (v *pythonValue) endsString(text string, last bool) bodyState {
	s := starts(text, v.quote, last)
	if s != bodyMoved || len(v.quote) > 1 {
		return s
	}
	rest, ok := skipSpace(text[1:])
	switch {
	case !ok:
		return bodyRefused
	case rest == "" && !last:
		return bodyWaiting
	case rest == "" || strings.IndexByte(",:)]}", rest[0]) >= 0:
		return bodyMoved
	}
	return v.atClose(rest, last)
}

// pythonEscapes are the escapes of one character, as JSON.
var pythonEscapes = map[byte]string{
	'\\': `\\`, '"': `\"`, '\'': `'`, '/': `/`, 'n': `\n`, 't': `\t`, 'r': `\r`, 'b': `\b`, 'f': `\f`,
	'a': `\u0007`, 'v': `\u000b`, '0': `\u0000`, '\n': ``,
}

// escapeDigits are the numbers of hexadecimal digits of escapes.
var escapeDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// escape reads an escape sequence and returns its length; 0: more text is needed. An
// unknown one stays as it is, as in Python.
func (v *pythonValue) escape(text string, last bool) int {
	if len(text) < 2 {
		if last {
			v.out.WriteString(`\\`)
		}
		return b2i(last)
	}
	if out, ok := pythonEscapes[text[1]]; ok {
		v.out.WriteString(out)
		return 2
	}
	if digits, ok := escapeDigits[text[1]]; ok {
		end := min(2+digits, len(text))
		number := text[2:end]
		code, err := strconv.ParseUint("0"+number, 16, 64)
		switch {
		case err == nil && len(number) < digits && !last:
			return 0
		case err == nil && len(number) == digits && code <= utf8.MaxRune:
			v.writeCode(rune(code))
			return end
		}
	}
	v.wrong = true
	v.out.WriteString(`\\`)
	return 1
}

// writeCode writes a character by its number. It keeps the escapes of a surrogate pair,
// which mean the same in JSON.
func (v *pythonValue) writeCode(code rune) {
	if code > 0xFFFF {
		v.out.WriteString(string(code))
		return
	}
	fmt.Fprintf(&v.out, `\u%04x`, code)
}
