package jinja

import (
	"cmp"
	"strings"
)

// compare evaluates one comparison of a chain.
func compare(s *state, op string, x, y Value) bool {
	s.charge(1)
	switch op {
	case "==":
		return equal(s, x, y)
	case "!=":
		return !equal(s, x, y)
	case "in":
		return contains(s, y, x)
	case "not in":
		return !contains(s, y, x)
	}
	c := order(s, op, x, y)
	switch op {
	case "<":
		return c == -1
	case "<=":
		return c == -1 || c == 0
	case ">":
		return c == 1
	}
	return c == 1 || c == 0
}

// unordered is the order of a number and NaN.
const unordered = 2

// order compares two values for sorting: it returns -1, 0, 1 or unordered.
func order(s *state, op string, x, y Value) int {
	for _, v := range []Value{x, y} {
		if u, ok := v.(*undefined); ok {
			fail("%s", u.message)
		}
	}
	i, f, isFloat, ok := number(x)
	j, g, isFloat2, ok2 := number(y)
	if ok && ok2 {
		switch {
		case !isFloat && !isFloat2:
			return cmp.Compare(i, j)
		case f < g:
			return -1
		case f > g:
			return 1
		case f == g:
			return 0
		}
		return unordered
	}
	switch x := x.(type) {
	case Str:
		if y, ok := y.(Str); ok {
			s.charge(min(len(x.s), len(y.s)) / 32)
			return strings.Compare(x.s, y.s)
		}
	case *List:
		if y, ok := y.(*List); ok && x.tuple == y.tuple {
			return orderLists(s, op, x.items, y.items)
		}
	}
	fail("TypeError: '%s' not supported between instances of '%s' and '%s'", op, typeName(x), typeName(y))
	return 0
}

func orderLists(s *state, op string, x, y []Value) int {
	s.nest()
	defer s.unnest()
	for i := range min(len(x), len(y)) {
		if !equal(s, x[i], y[i]) {
			return order(s, op, x[i], y[i])
		}
	}
	return cmp.Compare(len(x), len(y))
}

func less(s *state, x, y Value) bool { return order(s, "<", x, y) == -1 }

// equal implements Python's ==.
func equal(s *state, x, y Value) bool {
	s.charge(1)
	s.nest()
	defer s.unnest()
	i, f, isFloat, ok := number(x)
	if j, g, isFloat2, ok2 := number(y); ok || ok2 {
		if ok && ok2 && !isFloat && !isFloat2 {
			return i == j
		}
		return ok && ok2 && f == g
	}
	switch x := x.(type) {
	case Str:
		y, ok := y.(Str)
		if !ok || len(x.s) != len(y.s) {
			return false
		}
		s.charge(len(x.s) / 32)
		return x.s == y.s
	case *List:
		y, ok := y.(*List)
		if !ok || x.tuple != y.tuple || len(x.items) != len(y.items) {
			return false
		}
		for i := range x.items {
			if !equal(s, x.items[i], y.items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		y, ok := y.(*Dict)
		return ok && equalDicts(s, x, y)
	case *undefined:
		_, ok := y.(*undefined)
		return ok
	case pyRange:
		y, ok := y.(pyRange)
		return ok && x.len() == y.len() && (x.len() == 0 || x.start == y.start && (x.len() == 1 || x.step == y.step))
	}
	return x == y
}

func equalDicts(s *state, x, y *Dict) bool {
	if len(x.keys) != len(y.keys) {
		return false
	}
	for i, k := range x.keys {
		v, ok := y.get(s, k)
		if !ok || !equal(s, x.vals[i], v) {
			return false
		}
	}
	return true
}

// contains implements "v in list".
func contains(s *state, list, v Value) bool {
	switch list := list.(type) {
	case Str:
		part, ok := v.(Str)
		if !ok {
			fail("TypeError: 'in <string>' requires string as left operand, not %s", typeName(v))
		}
		s.charge((len(list.s) + len(part.s)) / 16)
		return strings.Contains(list.s, part.s)
	case *Dict:
		if _, ok := hash(s, v); !ok {
			fail("TypeError: unhashable type: '%s'", typeName(v))
		}
		_, ok := list.get(s, v)
		return ok
	case *List, *view, *generator, pyRange, *undefined:
		for _, item := range items(s, list) {
			if equal(s, item, v) {
				return true
			}
		}
		return false
	}
	fail("TypeError: argument of type '%s' is not iterable", typeName(list))
	return false
}
