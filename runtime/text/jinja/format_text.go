package jinja

import (
	"math"
	"strconv"
	"strings"
)

// formatFilter is the filter format, which applies the % operator.
func formatFilter(s *state, a args) Value {
	if len(a.pos) > 1 && len(a.names) > 0 {
		fail("can't handle positional and keyword arguments at the same time")
	}
	text := toStr(s, a.pos[0])
	if len(a.names) > 0 {
		return formatPercent(s, text, makeDict(s, args{names: a.names, named: a.named}))
	}
	return formatPercent(s, text, newTuple(a.pos[1:]...))
}

// A percent is the state of formatting with the % operator.
type percent struct {
	s      *state
	text   Str
	at     int
	values []Value
	next   int
	dict   *Dict
	out    builder
}

// formatPercent is text % value.
func formatPercent(s *state, text Str, value Value) Value {
	f := &percent{s: s, text: text, values: []Value{value}}
	if list, ok := value.(*List); ok && list.tuple {
		f.values = list.items
	}
	f.dict, _ = value.(*Dict)
	s.charge(len(text.s) / 8)
	for f.at < len(text.s) {
		n := strings.IndexByte(text.s[f.at:], '%')
		if n < 0 {
			n = len(text.s) - f.at
		}
		f.out.add(text.sub(f.at, f.at+n))
		if f.at += n; f.at < len(text.s) {
			f.at++
			f.directive()
		}
		s.checkLen(len(f.out.b))
	}
	if f.next < len(f.values) && f.dict == nil {
		fail("TypeError: not all arguments converted during string formatting")
	}
	return s.made(f.out.str())
}

func (f *percent) byte() byte {
	if f.at >= len(f.text.s) {
		fail("ValueError: incomplete format")
	}
	f.at++
	return f.text.s[f.at-1]
}

func (f *percent) value() Value {
	if f.next >= len(f.values) {
		fail("TypeError: not enough arguments for format string")
	}
	f.next++
	return f.values[f.next-1]
}

// count parses digits, or * for the next value.
func (f *percent) count(c byte) (n int, next byte) {
	if c == '*' {
		v := toInt(f.value())
		if v < 0 || v > math.MaxInt32 {
			fail("OverflowError: a width of %d", v)
		}
		return int(v), f.byte()
	}
	for isDigit(c) {
		if n = n*10 + int(c-'0'); n > math.MaxInt32 {
			fail("ValueError: width too big")
		}
		c = f.byte()
	}
	return n, c
}

// directive formats one directive after a %.
func (f *percent) directive() {
	c := f.byte()
	var value Value
	keyed := false
	if c == '(' {
		end := strings.IndexByte(f.text.s[f.at:], ')')
		if end < 0 {
			fail("ValueError: incomplete format key")
		}
		if f.dict == nil {
			fail("TypeError: format requires a mapping")
		}
		key := f.text.s[f.at : f.at+end]
		v, ok := f.dict.Get(key)
		if !ok {
			fail("KeyError: '%s'", key)
		}
		value, keyed = v, true
		f.at += end + 1
		c = f.byte()
	}
	spec := formatSpec{fill: ' ', sign: '-', precision: -1, align: '>'}
	for ; strings.IndexByte("#0- +", c) >= 0; c = f.byte() {
		switch c {
		case '#':
			spec.alternate = true
		case '-':
			spec.align = '<'
		case '0':
			spec.fill = '0'
		default:
			spec.sign = c
		}
	}
	spec.width, c = f.count(c)
	if c == '.' {
		spec.precision, c = f.count(f.byte())
	}
	for strings.IndexByte("hlL", c) >= 0 {
		c = f.byte()
	}
	if c == '%' {
		f.out.lit("%")
		return
	}
	if !keyed {
		value = f.value()
	}
	f.out.add(f.convert(spec, c, value))
}

// convert formats a value by a conversion character.
func (f *percent) convert(spec formatSpec, c byte, v Value) Str {
	zero := spec.fill == '0'
	spec.kind = c
	switch c {
	case 's', 'r', 'a':
		spec.fill, spec.kind = ' ', 's'
		if c != 's' {
			var b builder
			repr(f.s, &b, v, 0)
			v = b.str()
		}
		return spec.format(f.s, toStr(f.s, v))
	case 'c':
		if text, ok := v.(Str); ok && text.length() == 1 {
			return text
		}
		return Text(string(rune(toInt(v))))
	case 'd', 'i', 'u', 'x', 'X', 'o':
		i, x, isFloat, ok := number(v)
		if !ok || isFloat && strings.IndexByte("xXo", c) >= 0 {
			fail("TypeError: %%%c format: a real number is required, not %s", c, typeName(v))
		}
		if isFloat {
			i = int64(x)
		}
		v = i
		if strings.IndexByte("iu", c) >= 0 {
			spec.kind = 'd'
		}
		spec.precision = -1
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if _, _, _, ok := number(v); !ok {
			fail("TypeError: must be real number, not %s", typeName(v))
		}
	default:
		fail("ValueError: unsupported format character '%c' (0x%x)", c, c)
	}
	if zero && spec.align != '<' {
		spec.align = '='
	} else {
		spec.fill = ' '
	}
	return spec.format(f.s, v)
}

// formatBraces is str.format.
func formatBraces(s *state, text Str, a args) Value {
	var out builder
	auto := 0
	s.charge(len(text.s) / 8)
	for at := 0; at < len(text.s); {
		n := strings.IndexAny(text.s[at:], "{}")
		if n < 0 {
			n = len(text.s) - at
		}
		out.add(text.sub(at, at+n))
		if at += n; at == len(text.s) {
			break
		}
		if at+1 < len(text.s) && text.s[at+1] == text.s[at] {
			out.add(text.sub(at, at+1))
			at += 2
			continue
		}
		if text.s[at] == '}' {
			fail("ValueError: Single '}' encountered in format string")
		}
		end := matchBrace(text.s, at)
		out.add(formatField(s, text.s[at+1:end], a, &auto, 0))
		at = end + 1
		s.checkLen(len(out.b))
	}
	return s.made(out.str())
}

// matchBrace returns the index of the brace that closes the one at index at.
func matchBrace(text string, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	fail("ValueError: expected '}' before end of string")
	return 0
}

// formatField formats a replacement field: name!conversion:format_spec.
func formatField(s *state, field string, a args, auto *int, depth int) Str {
	if depth > 1 {
		fail("ValueError: Max string recursion exceeded")
	}
	name, spec, _ := strings.Cut(field, ":")
	name, conversion, _ := strings.Cut(name, "!")
	v := fieldValue(s, name, a, auto)
	switch conversion {
	case "s":
		v = toStr(s, v)
	case "r", "a":
		var b builder
		repr(s, &b, v, 0)
		v = b.str()
	}
	f := parseSpec(fillSpec(s, spec, a, auto, depth))
	return f.format(s, v)
}

// fillSpec replaces the fields in a format specifier.
func fillSpec(s *state, spec string, a args, auto *int, depth int) string {
	var out []byte
	for {
		from := strings.IndexByte(spec, '{')
		if from < 0 {
			return string(append(out, spec...))
		}
		end := matchBrace(spec, from)
		out = append(append(out, spec[:from]...), formatField(s, spec[from+1:end], a, auto, depth+1).s...)
		spec = spec[end+1:]
		s.checkLen(len(out))
	}
}

// fieldValue returns the value of a field name such as 0.attribute[key].
func fieldValue(s *state, name string, a args, auto *int) Value {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, rest := name[:end], name[end:]
	if first == "" {
		first = strconv.Itoa(*auto)
		*auto++
	}
	s.charge(1 + len(a.names)/16)
	v := fieldArgument(first, a)
	for rest != "" {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			s.charge(1)
			v, rest = attr(v, rest[1:end]), rest[end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 {
			fail("ValueError: Missing ']' in format string")
		}
		var key Value = Text(rest[1:end])
		if allRunes(rest[1:end], isDecimalRune) {
			key = parseNumber(rest[1:end])
		}
		v, rest = item(s, v, key), rest[end+1:]
	}
	return v
}

func fieldArgument(name string, a args) Value {
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 || i >= len(a.pos) {
			fail("IndexError: Replacement index %d out of range for positional args tuple", i)
		}
		return a.pos[i]
	}
	for i, n := range a.names {
		if n == name {
			return a.named[i]
		}
	}
	fail("KeyError: '%s'", name)
	return nil
}
