package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// intFilter converts a value to an integer, or returns the default.
func intFilter(s *state, a args) Value {
	p := a.bind("int", "value", "default=0", "base=10")
	switch v := p[0].(type) {
	case *undefined:
		fail("%s", v.message)
	case Str:
		text := strings.ToLower(strings.TrimFunc(v.s, isSpace))
		base := int(toInt(p[2]))
		prefixes := map[int]string{2: "0b", 8: "0o", 16: "0x"}
		if prefix := prefixes[base]; prefix != "" {
			text = strings.Replace(text, prefix, "", 1)
		}
		if base < 2 || base > 36 {
			return p[1]
		}
		if len(text) < 4300 { // Python's limit; conversion takes quadratic time
			if i, ok := new(big.Int).SetString(strings.ReplaceAll(text, "_", ""), base); ok {
				return parseNumber(i.String())
			}
		}
		if f, ok := parseFloat(text); ok && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return truncated(f)
		}
		return p[1]
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return p[1]
		}
		return truncated(v)
	case bigInt:
		return v
	}
	if i, _, _, ok := number(p[0]); ok {
		return i
	}
	return p[1]
}

// truncated is int() of a float.
func truncated(f float64) Value {
	i, _ := big.NewFloat(math.Trunc(f)).Int(nil)
	return parseNumber(i.String())
}

// parseFloat is float() of a string.
func parseFloat(text string) (float64, bool) {
	text = strings.ToLower(strings.TrimFunc(text, isSpace))
	if strings.ContainsAny(text, "xp") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func floatFilter(_ *state, a args) Value {
	p := a.bind("float", "value", "default=0.0")
	switch v := p[0].(type) {
	case *undefined:
		fail("%s", v.message)
	case Str:
		if f, ok := parseFloat(v.s); ok {
			return f
		}
		return p[1]
	case bigInt:
		f, _ := strconv.ParseFloat(string(v), 64)
		return f
	}
	if _, f, _, ok := number(p[0]); ok {
		return f
	}
	return p[1]
}

// needNumber returns a number argument.
func needNumber(name string, v Value) (i int64, f float64, isFloat bool) {
	if u, ok := v.(*undefined); ok {
		fail("%s", u.message)
	}
	i, f, isFloat, ok := number(v)
	if !ok {
		fail("TypeError: %s: expected a number, not %s", name, typeName(v))
	}
	return i, f, isFloat
}

func absFilter(_ *state, a args) Value {
	i, f, isFloat := needNumber("abs", a.bind("abs", "x")[0])
	switch {
	case isFloat:
		return math.Abs(f)
	case i < 0:
		return intOp("-", 0, i)
	}
	return i
}

func roundFilter(_ *state, a args) Value {
	p := a.bind("round", "value", "precision=0", "method=common")
	i, f, isFloat := needNumber("round", p[0])
	digits := toInt(p[1])
	if digits > 400 || digits < -400 {
		fail("ValueError: round: a precision of %d", digits)
	}
	method, _ := p[2].(Str)
	scale := math.Pow(10, float64(digits))
	switch method.s {
	case "common":
		if !isFloat {
			return roundInt(i, digits)
		}
		return roundFloat(f, int(digits))
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	}
	fail("method must be common, ceil or floor")
	return nil
}

// roundInt is round() of an integer, which remains an integer.
func roundInt(i, digits int64) Value {
	if digits >= 0 {
		return i
	}
	if digits < -18 {
		return int64(0)
	}
	unit := power(10, -digits).(int64)
	return int64(math.RoundToEven(float64(i)/float64(unit))) * unit
}

// roundFloat rounds the exact value to a number of decimals, half to even.
func roundFloat(f float64, digits int) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return f
	}
	if digits < 0 {
		unit := math.Pow(10, float64(-digits))
		return math.RoundToEven(f/unit) * unit
	}
	out, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
	return out
}

func filesizeFilter(s *state, a args) Value {
	p := a.bind("filesizeformat", "value", "binary=false")
	_, size, _ := needNumber("filesizeformat", floatFilter(s, args{pos: p[:1]}))
	base, units := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if truth(p[1]) {
		base, units = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	if size == 1 {
		return Text("1 Byte")
	}
	if size < base {
		return Text(fmt.Sprintf("%d Bytes", int64(size)))
	}
	unit := base
	for i, name := range units {
		unit = math.Pow(base, float64(i+2))
		if size < unit {
			return Text(fmt.Sprintf("%.1f %s", base*size/unit, name))
		}
	}
	return Text(fmt.Sprintf("%.1f %s", base*size/unit, units[len(units)-1]))
}
