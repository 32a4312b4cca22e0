package expand

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/syntax"
)

func (f *frame) unary(e *syntax.Expr) any {
	v := f.eval(e.Args[0])
	if f.at = e.Pos; f.words && v == nil {
		return nil
	}
	switch n := v.(type) {
	case int:
		if e.Text == "-" {
			return f.whole(-n)
		} else if e.Text == "+" {
			return n
		}
	case float64:
		if e.Text == "-" {
			return -n
		} else if e.Text == "+" {
			return n
		}
	}
	if e.Text != "not" {
		f.fail("%s of %s, want a number", e.Text, typeName(v))
	}
	return !truth(v)
}

// whole bounds integers to those that a float64 has.
func (f *frame) whole(n int) int {
	if n > 1<<53 || n < -1<<53 {
		f.fail("the number %d is too large", n)
	}
	return n
}

func (f *frame) binary(e *syntax.Expr) any {
	a := f.eval(e.Args[0])
	switch e.Text {
	case "and":
		if !truth(a) {
			return a
		}
		return f.eval(e.Args[1])
	case "or":
		if truth(a) {
			return a
		}
		return f.eval(e.Args[1])
	case "|":
		if a != nil {
			return a
		}
		return f.eval(e.Args[1])
	}
	b := f.eval(e.Args[1])
	f.at = e.Pos
	switch e.Text {
	case "==":
		return f.equal(a, b)
	case "!=":
		return !f.equal(a, b)
	case "in":
		return f.contains(b, a)
	case "not in":
		return !f.contains(b, a)
	case "<", ">", "<=", ">=":
		return f.compare(e.Text, a, b)
	case "%":
		f.fail("%% begins the name of a value; modulo is mod(a, b)")
	}
	return f.arithmetic(e.Text, a, b)
}

// equal reports whether two values are equal, numbers of both types by their value.
func (f *frame) equal(a, b any) bool {
	x, isX := float(a)
	y, isY := float(b)
	if isX && isY {
		return x == y
	}
	l, isL := a.([]any)
	m, isM := b.([]any)
	if isL && isM {
		f.spend(min(len(l), len(m)))
		return slices.EqualFunc(l, m, f.equal)
	}
	return isX == isY && isL == isM && reflect.DeepEqual(a, b)
}

func (f *frame) contains(list, v any) bool {
	switch l := list.(type) {
	case []any:
		f.spend(len(l))
		return slices.ContainsFunc(l, func(x any) bool { return f.equal(x, v) })
	case string:
		if s, ok := v.(string); ok {
			return strings.Contains(l, s)
		}
	}
	f.fail("in needs a list on its right, not %s", typeName(list))
	return false
}

func (f *frame) compare(op string, a, b any) bool {
	x, isX := float(a)
	y, isY := float(b)
	if !isX || !isY {
		f.fail("%s compares numbers, not %s with %s", op, typeName(a), typeName(b))
	}
	switch op {
	case "<":
		return x < y
	case ">":
		return x > y
	case "<=":
		return x <= y
	}
	return x >= y
}

func (f *frame) arithmetic(op string, a, b any) any {
	if f.words && (a == nil || b == nil) {
		return nil
	}
	if l, ok := a.([]any); ok {
		if m, ok := b.([]any); ok && op == "+" {
			return f.list(slices.Concat(l, m))
		}
		if n, ok := b.(int); ok && op == "*" {
			return f.repeated(l, n)
		}
	}
	if l, ok := b.([]any); ok && op == "*" {
		if n, ok := a.(int); ok {
			return f.repeated(l, n)
		}
	}
	i, isI := a.(int)
	j, isJ := b.(int)
	if isI && isJ && op != "/" {
		return f.integers(op, i, j)
	}
	x, isX := float(a)
	y, isY := float(b)
	if !isX || !isY {
		f.fail("%s of %s and %s, want numbers", op, typeName(a), typeName(b))
	}
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	}
	if y == 0 {
		f.fail("division by zero")
	}
	if op == "//" {
		return math.Floor(x / y)
	}
	return x / y
}

func (f *frame) integers(op string, a, b int) any {
	switch op {
	case "+":
		return f.whole(a + b)
	case "-":
		return f.whole(a - b)
	case "*":
		if n := float64(a) * float64(b); math.Abs(n) > 1<<53 {
			f.fail("the number %g is too large", n)
		}
		return a * b
	}
	if b == 0 {
		f.fail("division by zero")
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// list bounds the length of a new list. Its elements count as steps, which bounds the memory
// of all.
func (f *frame) list(l []any) []any {
	if len(l) > maxList {
		f.fail("a list of more than %d elements", maxList)
	}
	f.spend(len(l))
	return l
}

func (f *frame) repeated(l []any, n int) []any {
	if n <= 0 || len(l) == 0 {
		return []any{}
	}
	if n > maxList || len(l)*n > maxList {
		f.fail("a list of more than %d elements", maxList)
	}
	return f.list(slices.Repeat(l, n))
}

func (f *frame) index(e *syntax.Expr) any {
	v := f.eval(e.Args[0])
	if f.at = e.Pos; len(e.Args) != 2 {
		f.fail("want one index")
	}
	i := f.eval(e.Args[1])
	f.at = e.Pos
	l, isList := v.([]any)
	n, isInt := i.(int)
	if !isList || !isInt {
		f.fail("%s of %s, want an element of a list", show(i), typeName(v))
	}
	if n < -len(l) || n >= len(l) {
		f.fail("element %d of a list of %d", n, len(l))
	}
	if n < 0 {
		n += len(l)
	}
	return l[n]
}
