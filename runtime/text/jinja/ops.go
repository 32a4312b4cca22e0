package jinja

import (
	"math"
	"math/bits"
	"strings"
)

// binary evaluates an arithmetic operator.
func binary(s *state, op string, x, y Value) Value {
	s.weigh(x, y)
	if str, ok := x.(Str); ok && op == "%" {
		return formatPercent(s, str, y)
	}
	for _, v := range []Value{x, y} {
		if u, ok := v.(*undefined); ok {
			fail("%s", u.message)
		}
	}
	i, f, isFloat, ok := number(x)
	j, g, isFloat2, ok2 := number(y)
	switch {
	case ok && ok2 && !isFloat && !isFloat2 && op != "/":
		return intOp(op, i, j)
	case ok && ok2:
		return floatOp(op, f, g)
	case op == "+":
		if v := add(s, x, y); v != nil {
			return v
		}
	case op == "*" && (ok || ok2):
		if ok {
			x, j = y, i
		}
		if v := multiply(s, x, j); v != nil && !isFloat && !isFloat2 {
			return v
		}
	}
	if op == "+" {
		switch x.(type) {
		case Str, *List:
			fail(`TypeError: can only concatenate %s (not "%s") to %[1]s`, typeName(x), typeName(y))
		}
	}
	fail("TypeError: unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(x), typeName(y))
	return nil
}

// add concatenates two strings, lists or tuples; it returns nil for other types.
func add(s *state, x, y Value) Value {
	switch x := x.(type) {
	case Str:
		if y, ok := y.(Str); ok {
			return s.made(concat(x, y))
		}
	case *List:
		if y, ok := y.(*List); ok && x.tuple == y.tuple {
			s.checkLen(len(x.items) + len(y.items))
			s.charge(len(x.items) + len(y.items))
			out := make([]Value, 0, len(x.items)+len(y.items))
			return &List{items: append(append(out, x.items...), y.items...), tuple: x.tuple}
		}
	}
	return nil
}

func multiply(s *state, v Value, n int64) Value {
	switch v := v.(type) {
	case Str:
		return repeatStr(s, v, n)
	case *List:
		n = max(n, 0)
		if len(v.items) > 0 && n > int64(s.limits.Bytes/len(v.items)) {
			s.checkLen(math.MaxInt)
		}
		s.charge(len(v.items) * int(n))
		out := &List{tuple: v.tuple}
		for range n {
			if len(v.items) == 0 {
				break
			}
			out.items = append(out.items, v.items...)
		}
		return out
	}
	return nil
}

// repeatStr repeats a string n times.
func repeatStr(s *state, v Str, n int64) Str {
	if n <= 0 || v.s == "" {
		return Str{}
	}
	if n > int64(s.limits.Bytes/len(v.s)) {
		s.checkLen(math.MaxInt)
	}
	if len(v.user) == 0 {
		return s.made(Text(strings.Repeat(v.s, int(n))))
	}
	s.charge(int(n))
	var b builder
	for range n {
		b.add(v)
	}
	return s.made(b.str())
}

func intOp(op string, x, y int64) Value {
	switch op {
	case "+":
		if z := x + y; (z > x) == (y > 0) {
			return z
		}
	case "-":
		if z := x - y; (z < x) == (y > 0) {
			return z
		}
	case "*":
		if z, ok := mul(x, y); ok {
			return z
		}
	case "//", "%":
		if y == 0 && op == "%" {
			fail("ZeroDivisionError: integer modulo by zero")
		}
		if y == 0 {
			fail("ZeroDivisionError: integer division or modulo by zero")
		}
		if y == -1 { // the one quotient that may overflow
			if op == "%" {
				return int64(0)
			}
			return intOp("-", 0, x)
		}
		q, r := x/y, x%y
		if r != 0 && (r < 0) != (y < 0) {
			q, r = q-1, r+y
		}
		if op == "%" {
			return r
		}
		return q
	case "**":
		return power(x, y)
	}
	fail("OverflowError: an integer leaves the range of 64 bits")
	return nil
}

func mul(x, y int64) (int64, bool) {
	negative := (x < 0) != (y < 0)
	hi, lo := bits.Mul64(abs64(x), abs64(y))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	if negative {
		return -int64(lo), true
	}
	return int64(lo), true
}

func abs64(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func power(x, y int64) Value {
	if y < 0 {
		if x == 0 {
			fail("ZeroDivisionError: 0.0 cannot be raised to a negative power")
		}
		return math.Pow(float64(x), float64(y))
	}
	result := int64(1)
	for ; y > 0; y-- {
		if x == 0 || x == 1 {
			return x
		}
		if x == -1 {
			return 1 - 2*(y%2)
		}
		var ok bool
		if result, ok = mul(result, x); !ok {
			fail("OverflowError: an integer leaves the range of 64 bits")
		}
	}
	return result
}

func floatOp(op string, x, y float64) Value {
	if y == 0 && (op == "/" || op == "//" || op == "%") {
		fail("ZeroDivisionError: division by zero")
	}
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "//":
		return math.Floor(x / y)
	case "%":
		r := math.Mod(x, y)
		if r != 0 && (r < 0) != (y < 0) {
			r += y
		}
		return r
	}
	return math.Pow(x, y)
}
