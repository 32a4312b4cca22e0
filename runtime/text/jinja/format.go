package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// A formatSpec is a format specifier of Python's format mini-language, which the %
// operator also uses.
type formatSpec struct {
	fill      rune
	align     byte // '<', '>', '^', '=', or 0: depends on kind
	sign      byte // '+', ' ' or '-'
	alternate bool
	width     int
	group     byte // ',' or '_', or 0
	precision int  // -1: none
	kind      byte // presentation type: d, f, s, …; 0: none
}

// parseSpec parses a format specifier.
func parseSpec(text string) formatSpec {
	f := formatSpec{fill: ' ', sign: '-', precision: -1}
	rest := []rune(text)
	isAlign := func(i int) bool { return i < len(rest) && strings.ContainsRune("<>^=", rest[i]) }
	switch {
	case isAlign(1):
		f.fill, f.align, rest = rest[0], byte(rest[1]), rest[2:]
	case isAlign(0):
		f.align, rest = byte(rest[0]), rest[1:]
	}
	take := func(set string) byte {
		if len(rest) > 0 && strings.ContainsRune(set, rest[0]) {
			c := byte(rest[0])
			rest = rest[1:]
			return c
		}
		return 0
	}
	if c := take("+- "); c != 0 {
		f.sign = c
	}
	f.alternate = take("#") != 0
	if take("0") != 0 && f.align == 0 {
		f.fill, f.align = '0', '='
	}
	count := func() int {
		n := 0
		for len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
			if n = n*10 + int(rest[0]-'0'); n > math.MaxInt32 {
				fail("ValueError: Too many decimal digits in format string")
			}
			rest = rest[1:]
		}
		return n
	}
	f.width = count()
	f.group = take(",_")
	if take(".") != 0 {
		f.precision = count()
	}
	f.kind = take("bcdeEfFgGnosxX%")
	if len(rest) > 0 {
		fail("ValueError: Invalid format specifier '%s'", text)
	}
	return f
}

// format formats a value.
func (f *formatSpec) format(s *state, v Value) Str {
	s.checkLen(max(f.width, f.precision))
	s.charge(f.width + max(f.precision, 0))
	if text, ok := v.(Str); ok || f.kind == 's' {
		if f.kind != 0 && f.kind != 's' {
			fail("ValueError: Unknown format code '%c' for object of type 'str'", f.kind)
		}
		if !ok {
			text = toStr(s, v)
		}
		if f.precision >= 0 && text.length() > f.precision {
			text = text.sub(0, offsets(text.s)[f.precision])
		}
		return f.pad(s, text, '<', 0)
	}
	if *f == (formatSpec{fill: ' ', sign: '-', precision: -1}) {
		return toStr(s, v)
	}
	i, x, isFloat, ok := number(v)
	if !ok {
		fail("TypeError: unsupported format string passed to %s.__format__", typeName(v))
	}
	var digits string
	switch {
	case strings.IndexByte("eEfFgG%", f.kind) >= 0 && f.kind != 0 || isFloat:
		digits = f.float(x)
	default:
		digits = f.integer(i)
	}
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimPrefix(digits, "-")
	if f.group != 0 {
		digits = groupDigits(digits, f.group)
	}
	sign := ""
	if negative {
		sign = "-"
	} else if f.sign != '-' {
		sign = string(f.sign)
	}
	return f.pad(s, Text(sign+digits), '>', len(sign))
}

// pad pads text to the width; signed is the length of the sign, after which the
// alignment '=' pads.
func (f *formatSpec) pad(s *state, text Str, align byte, signed int) Str {
	if f.align != 0 {
		align = f.align
	}
	fill := Text(string(f.fill))
	width := int64(f.width)
	switch align {
	case '<':
		return pad(s, text, width, fill, 0)
	case '^':
		n := width - int64(text.length())
		return concat(concat(repeatStr(s, fill, n/2), text), repeatStr(s, fill, n-n/2))
	case '=':
		return concat(text.sub(0, signed), pad(s, text.sub(signed, len(text.s)), width-int64(signed), fill, 1))
	}
	return pad(s, text, width, fill, 1)
}

func (f *formatSpec) integer(i int64) string {
	bases := map[byte]int{'b': 2, 'o': 8, 'x': 16, 'X': 16}
	base, ok := bases[f.kind]
	if !ok {
		if f.kind == 'c' {
			return string(rune(i))
		}
		return strconv.FormatInt(i, 10)
	}
	text := new(big.Int).SetInt64(i).Text(base)
	if f.alternate {
		prefix := "0" + strings.ToLower(string(f.kind))
		if text = strings.TrimPrefix(text, "-"); i < 0 {
			prefix = "-" + prefix
		}
		text = prefix + text
	}
	if f.kind == 'X' {
		text = strings.ToUpper(text)
	}
	return text
}

func (f *formatSpec) float(x float64) string {
	precision := f.precision
	if precision > 1000 {
		fail("ValueError: precision too big")
	}
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return formatFloat(x)
	}
	kind := f.kind
	if precision < 0 {
		if kind == 0 {
			return formatFloat(x)
		}
		precision = 6
	}
	switch kind {
	case '%':
		return strconv.FormatFloat(x*100, 'f', precision, 64) + "%"
	case 'f', 'F':
		return strconv.FormatFloat(x, 'f', precision, 64)
	case 'e', 'E':
		return strconv.FormatFloat(x, kind, precision, 64)
	case 'd', 'x', 'X', 'o', 'b', 'c':
		fail("ValueError: Unknown format code '%c' for object of type 'float'", kind)
	}
	return general(x, max(precision, 1), kind == 'G', kind == 0)
}

// general formats with type g: a number of significant digits, without trailing zeros.
func general(x float64, precision int, upper, always bool) string {
	e := strconv.FormatFloat(x, 'e', precision-1, 64)
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	mantissa, suffix, _ := strings.Cut(e, "e")
	limit := precision
	if always {
		limit--
	}
	if exp >= -4 && exp < limit {
		mantissa, suffix = strconv.FormatFloat(x, 'f', max(precision-1-exp, 0), 64), ""
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if suffix == "" {
		if always && !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		return mantissa
	}
	if upper {
		return mantissa + "E" + suffix
	}
	return mantissa + "e" + suffix
}

// groupDigits inserts a separator between groups of three digits of the integer part.
func groupDigits(digits string, sign byte) string {
	end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(digits)
	}
	out := digits[end:]
	for end > 3 {
		out = string(sign) + digits[end-3:end] + out
		end -= 3
	}
	return digits[:end] + out
}
