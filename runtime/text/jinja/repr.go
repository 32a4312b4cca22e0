package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// toStr is Python's str().
func toStr(s *state, v Value) Str {
	switch v := v.(type) {
	case Str:
		return v
	case *undefined:
		if v.unsafe {
			fail("%s", v.message)
		}
		return Str{}
	case nil:
		return Text("None")
	case bool:
		if v {
			return Text("True")
		}
		return Text("False")
	case int64:
		return Text(strconv.FormatInt(v, 10))
	case float64:
		return Text(formatFloat(v))
	}
	var b builder
	repr(s, &b, v, 0)
	return b.str()
}

// formatFloat is repr() of a float: the shortest digits that parse to the same value.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == 0:
		if math.Signbit(f) {
			return "-0.0"
		}
		return "0.0"
	}
	e := strconv.FormatFloat(f, 'e', -1, 64)
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if exp < -4 || exp >= 16 {
		return e
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// repr is Python's repr().
func repr(s *state, b *builder, v Value, depth int) {
	if depth > maxNesting {
		fail("RecursionError: a value is nested deeper than %d", maxNesting)
	}
	s.charge(1)
	switch v := v.(type) {
	case Str:
		s.charge(len(v.s) / 8)
		reprStr(b, v)
		s.checkLen(len(b.b))
	case bigInt:
		b.lit(string(v))
	case *undefined:
		b.lit("Undefined")
	case *List:
		reprList(s, b, v, depth)
	case *Dict:
		b.lit("{")
		for i, k := range v.keys {
			if i > 0 {
				b.lit(", ")
			}
			repr(s, b, k, depth+1)
			b.lit(": ")
			repr(s, b, v.vals[i], depth+1)
		}
		b.lit("}")
	case *view:
		b.lit("dict_" + v.kind + "(")
		repr(s, b, NewList(v.items()...), depth+1)
		b.lit(")")
	case pyRange:
		b.lit(fmt.Sprintf("range(%d, %d", v.start, v.stop))
		if v.step != 1 {
			b.lit(fmt.Sprintf(", %d", v.step))
		}
		b.lit(")")
	case *namespace:
		b.lit("<Namespace ")
		repr(s, b, v.vars, depth+1)
		b.lit(">")
	case *macro:
		b.lit("<Macro '" + v.name + "'>")
	case nil, bool, int64, float64:
		b.add(toStr(s, v))
	default:
		b.lit("<" + typeName(v) + " object>")
	}
}

func reprList(s *state, b *builder, v *List, depth int) {
	open, end := "[", "]"
	if v.tuple {
		open, end = "(", ")"
		if len(v.items) == 1 {
			end = ",)"
		}
	}
	b.lit(open)
	for i, item := range v.items {
		if i > 0 {
			b.lit(", ")
		}
		repr(s, b, item, depth+1)
	}
	b.lit(end)
}

// reprStr quotes a string: in single quotes, unless it contains only those.
func reprStr(b *builder, v Str) {
	quote := '\''
	if strings.Contains(v.s, "'") && !strings.Contains(v.s, `"`) {
		quote = '"'
	}
	b.lit(string(quote))
	b.add(v.mapRunes(func(r rune) string {
		switch {
		case r == quote || r == '\\':
			return `\` + string(r)
		case r == '\n':
			return `\n`
		case r == '\r':
			return `\r`
		case r == '\t':
			return `\t`
		case r < ' ' || r == 0x7f:
			return hexRune(`\x`, r, 2)
		case r < 0x7f || printable(r):
			return string(r)
		case r < 0x100:
			return hexRune(`\x`, r, 2)
		case r < 0x10000:
			return hexRune(`\u`, r, 4)
		}
		return hexRune(`\U`, r, 8)
	}))
	b.lit(string(quote))
}

// hexRune returns a prefix and a number of hexadecimal digits.
func hexRune(prefix string, r rune, digits int) string {
	out := []byte(prefix)
	for i := digits - 1; i >= 0; i-- {
		out = append(out, "0123456789abcdef"[r>>(4*i)&15])
	}
	return string(out)
}

// printable is str.isprintable of a character: false for control, format, surrogate,
// private and unassigned characters and for separators other than the space.
func printable(r rune) bool {
	if r == ' ' {
		return true
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}
