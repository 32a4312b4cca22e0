package jinja

import "strings"

type testFunc func(s *state, a args) bool

// tests are the tests available after "is".
var tests = map[string]testFunc{
	"defined":   kindTest("defined", func(v Value) bool { return !isKind[*undefined](v) }),
	"undefined": kindTest("undefined", isKind[*undefined]),
	"none":      kindTest("none", func(v Value) bool { return v == nil }),
	"boolean":   kindTest("boolean", isKind[bool]),
	"true":      kindTest("true", func(v Value) bool { return v == true }),
	"false":     kindTest("false", func(v Value) bool { return v == false }),
	"integer":   kindTest("integer", func(v Value) bool { return isKind[int64](v) || isKind[bigInt](v) }),
	"float":     kindTest("float", isKind[float64]),
	"number":    kindTest("number", func(v Value) bool { _, _, _, ok := number(v); return ok || isKind[bigInt](v) }),
	"string":    kindTest("string", isKind[Str]),
	"mapping":   kindTest("mapping", isKind[*Dict]),
	"sequence":  kindTest("sequence", isSequence),
	"iterable":  kindTest("iterable", isIterable),
	"callable":  kindTest("callable", isCallable),
	"escaped":   kindTest("escaped", func(Value) bool { return false }),
	"lower":     caseTest("lower", isLower),
	"upper":     caseTest("upper", isUpper),
	"odd": func(s *state, a args) bool {
		return binary(s, "%", a.bind("odd", "value")[0], int64(2)) == Value(int64(1))
	},
	"even": func(s *state, a args) bool {
		return equal(s, binary(s, "%", a.bind("even", "value")[0], int64(2)), int64(0))
	},
	"divisibleby": divisibleTest,
	"sameas":      sameTest,
	"in":          pairTest("in"),
	"filter":      func(s *state, a args) bool { _, ok := s.filters[toStr(s, a.bind("filter", "value")[0]).s]; return ok },
	"test":        func(s *state, a args) bool { _, ok := s.tests[toStr(s, a.bind("test", "value")[0]).s]; return ok },
	"eq":          pairTest("=="),
	"equalto":     pairTest("=="),
	"==":          pairTest("=="),
	"ne":          pairTest("!="),
	"!=":          pairTest("!="),
	"lt":          pairTest("<"),
	"lessthan":    pairTest("<"),
	"<":           pairTest("<"),
	"le":          pairTest("<="),
	"<=":          pairTest("<="),
	"gt":          pairTest(">"),
	"greaterthan": pairTest(">"),
	">":           pairTest(">"),
	"ge":          pairTest(">="),
	">=":          pairTest(">="),
}

func isKind[T any](v Value) bool {
	_, ok := v.(T)
	return ok
}

func kindTest(name string, is func(Value) bool) testFunc {
	return func(_ *state, a args) bool { return is(a.bind(name, "value")[0]) }
}

func caseTest(name string, is func(string) bool) testFunc {
	return func(s *state, a args) bool { return is(toStr(s, a.bind(name, "value")[0]).s) }
}

func pairTest(op string) testFunc {
	return func(s *state, a args) bool {
		p := a.bind(op, "a", "b")
		return compare(s, op, p[0], p[1])
	}
}

// isSequence reports whether a value has a length and items.
func isSequence(v Value) bool {
	switch v.(type) {
	case Str, *List, *Dict, pyRange, *undefined:
		return true
	}
	return false
}

func isIterable(v Value) bool {
	return isSequence(v) || isKind[*view](v) || isKind[*generator](v) || isKind[*loop](v)
}

func isCallable(v Value) bool {
	switch v.(type) {
	case *function, *macro, *loop, *joiner, *undefined:
		return true
	}
	return false
}

func divisibleTest(s *state, a args) bool {
	p := a.bind("divisibleby", "value", "num")
	return equal(s, binary(s, "%", p[0], p[1]), int64(0))
}

// sameTest compares identity: of None, booleans and objects. Equal strings and numbers
// count as identical.
func sameTest(s *state, a args) bool {
	p := a.bind("sameas", "value", "other")
	switch x := p[0].(type) {
	case Str:
		y, ok := p[1].(Str)
		return ok && strings.Compare(x.s, y.s) == 0
	case nil, bool, int64, float64, bigInt:
		return typeName(p[0]) == typeName(p[1]) && p[0] == p[1]
	}
	if _, ok := p[1].(Str); ok {
		return false
	}
	return p[0] == p[1]
}
