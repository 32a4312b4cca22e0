package jinja

import (
	"math"
	"strings"
)

type strMethod func(s *state, v Str, a args) Value

// strMethods are the methods of str that templates may call.
var strMethods = map[string]strMethod{
	"strip":      strip("strip", true, true),
	"lstrip":     strip("lstrip", true, false),
	"rstrip":     strip("rstrip", false, true),
	"split":      splitMethod,
	"rsplit":     rsplitMethod,
	"partition":  partition("partition", false),
	"rpartition": partition("rpartition", true),
	"replace":    replaceMethod,
	"splitlines": func(s *state, v Str, a args) Value {
		return &List{items: splitlines(s, v, truth(a.bind("splitlines", "keepends=")[0]))}
	},
	"startswith":   affix("startswith", strings.HasPrefix),
	"endswith":     affix("endswith", strings.HasSuffix),
	"removeprefix": removeAffix("removeprefix"),
	"removesuffix": removeAffix("removesuffix"),
	"upper":        mapped("upper", upper),
	"lower":        mapped("lower", lower),
	"casefold":     mapped("casefold", casefold),
	"capitalize":   mapped("capitalize", capitalize),
	"title":        mapped("title", titleCase),
	"swapcase":     mapped("swapcase", swapcase),
	"isupper":      predicate("isupper", isUpper),
	"islower":      predicate("islower", isLower),
	"isspace":      predicate("isspace", func(s string) bool { return allRunes(s, isSpace) }),
	"isdigit":      predicate("isdigit", func(s string) bool { return allRunes(s, isDigitRune) }),
	"isnumeric":    predicate("isnumeric", func(s string) bool { return allRunes(s, isNumericRune) }),
	"isdecimal":    predicate("isdecimal", func(s string) bool { return allRunes(s, isDecimalRune) }),
	"isalpha":      predicate("isalpha", func(s string) bool { return allRunes(s, isLetter) }),
	"isalnum":      predicate("isalnum", func(s string) bool { return allRunes(s, isAlnum) }),
	"isascii":      predicate("isascii", isASCII),
	"isidentifier": predicate("isidentifier", isIdentifier),
	"istitle": predicate("istitle", func(s string) bool {
		return s != "" && titleCase(Text(s)).s == s && (isUpper(s) || isLower(strings.ToLower(s)))
	}),
	"find":       find("find", false, false),
	"rfind":      find("rfind", true, false),
	"index":      find("index", false, true),
	"rindex":     find("rindex", true, true),
	"count":      countMethod,
	"join":       func(s *state, v Str, a args) Value { return joinStrict(s, v, a.bind("join", "iterable")[0]) },
	"zfill":      zfill,
	"ljust":      justify("ljust", 0),
	"rjust":      justify("rjust", 1),
	"center":     justify("center", 2),
	"expandtabs": expandtabs,
}

func mapped(name string, f func(Str) Str) strMethod {
	return func(s *state, v Str, a args) Value {
		a.bind(name)
		s.charge(len(v.s) / 8)
		return s.made(f(v))
	}
}

func predicate(name string, f func(string) bool) strMethod {
	return func(s *state, v Str, a args) Value {
		a.bind(name)
		s.charge(len(v.s) / 8)
		return f(v.s)
	}
}

// window returns the characters [start, end) of a string and the number of characters
// before them.
func window(s *state, v Str, start, end Value) (Str, int) {
	if start == nil && end == nil {
		return v, 0
	}
	at := offsets(v.s)
	s.charge(len(at) / 8)
	n := int64(len(at) - 1)
	clip := func(v Value, otherwise int64) int64 {
		if v == nil {
			return otherwise
		}
		i := toInt(v)
		if i < 0 {
			i = max(i+n, 0)
		}
		return min(i, n)
	}
	from, to := clip(start, 0), clip(end, n)
	if from > to {
		return Str{}, int(from)
	}
	return v.sub(at[from], at[to]), int(from)
}

// affix returns startswith or endswith; their argument may be a tuple.
func affix(name string, has func(s, part string) bool) strMethod {
	return func(s *state, v Str, a args) Value {
		p := a.bind(name, "prefix", "start=", "end=")
		v, _ = window(s, v, p[1], p[2])
		if list, ok := p[0].(*List); ok && list.tuple {
			for _, part := range list.items {
				if has(v.s, needStr(name, part).s) {
					return true
				}
			}
			return false
		}
		return has(v.s, needStr(name, p[0]).s)
	}
}

func removeAffix(name string) strMethod {
	return func(_ *state, v Str, a args) Value {
		part := needStr(name, a.bind(name, "affix")[0]).s
		switch {
		case name == "removeprefix" && strings.HasPrefix(v.s, part):
			return v.sub(len(part), len(v.s))
		case name == "removesuffix" && strings.HasSuffix(v.s, part):
			return v.sub(0, len(v.s)-len(part))
		}
		return v
	}
}

func find(name string, last, must bool) strMethod {
	return func(s *state, v Str, a args) Value {
		p := a.bind(name, "sub", "start=", "end=")
		part := needStr(name, p[0])
		v, before := window(s, v, p[1], p[2])
		s.charge(len(v.s) / 16)
		at := strings.Index(v.s, part.s)
		if last {
			at = strings.LastIndex(v.s, part.s)
		}
		if at < 0 {
			if must {
				fail("ValueError: substring not found")
			}
			return int64(-1)
		}
		return int64(before + Text(v.s[:at]).length())
	}
}

func countMethod(s *state, v Str, a args) Value {
	p := a.bind("count", "sub", "start=", "end=")
	v, _ = window(s, v, p[1], p[2])
	s.charge(len(v.s) / 16)
	return int64(strings.Count(v.s, needStr("count", p[0]).s))
}

// joinStrict is str.join, which accepts only strings.
func joinStrict(s *state, sep Str, list Value) Value {
	var b builder
	for i, item := range items(s, list) {
		text, ok := item.(Str)
		if !ok {
			fail("TypeError: sequence item %d: expected str instance, %s found", i, typeName(item))
		}
		if i > 0 {
			b.add(sep)
		}
		b.add(text)
		s.charge(1)
		s.checkLen(len(b.b))
	}
	return s.made(b.str())
}

func zfill(s *state, v Str, a args) Value {
	width := toInt(a.bind("zfill", "width")[0])
	fill := repeatStr(s, Text("0"), max(0, width-int64(v.length())))
	if v.s != "" && (v.s[0] == '-' || v.s[0] == '+') {
		return concat(concat(v.sub(0, 1), fill), v.sub(1, len(v.s)))
	}
	return concat(fill, v)
}

// justify returns ljust (side 0), rjust (1) or center (2).
func justify(name string, side int) strMethod {
	return func(s *state, v Str, a args) Value {
		p := a.bind(name, "width", "fillchar=")
		fill := Text(" ")
		if p[1] != nil {
			fill = needStr(name, p[1])
		}
		if fill.length() != 1 {
			fail("TypeError: The fill character must be exactly one character long")
		}
		return pad(s, v, toInt(p[0]), fill, side)
	}
}

func pad(s *state, v Str, width int64, fill Str, side int) Str {
	missing := width - int64(v.length())
	if missing <= 0 {
		return v
	}
	if missing > math.MaxInt32 {
		s.checkLen(math.MaxInt)
	}
	left := int64(0)
	switch side {
	case 1:
		left = missing
	case 2:
		left = missing/2 + missing&width&1
	}
	return concat(concat(repeatStr(s, fill, left), v), repeatStr(s, fill, missing-left))
}

func expandtabs(s *state, v Str, a args) Value {
	size := toInt(a.bind("expandtabs", "tabsize=8")[0])
	var b builder
	column := int64(0)
	s.charge(len(v.s))
	for _, c := range v.chars() {
		c := c.(Str)
		switch c.s {
		case "\t":
			if size > 0 {
				n := size - column%size
				b.add(repeatStr(s, Text(" "), n))
				column += n
			}
		case "\n", "\r":
			b.add(c)
			column = 0
		default:
			b.add(c)
			column++
		}
		s.checkLen(len(b.b))
	}
	return s.made(b.str())
}
