package jinja

import (
	"slices"
	"strings"
)

// args are the evaluated arguments of a call.
type args struct {
	pos   []Value
	names []string
	named []Value
}

// eval evaluates the arguments of a call.
func (n *argExprs) eval(s *state) (a args) {
	for _, e := range n.pos {
		a.pos = append(a.pos, e.eval(s))
	}
	for i, e := range n.named {
		a.names, a.named = append(a.names, n.names[i]), append(a.named, e.eval(s))
	}
	if n.rest != nil {
		a.pos = append(a.pos, items(s, n.rest.eval(s))...)
	}
	if n.restDict != nil {
		d, ok := n.restDict.eval(s).(*Dict)
		if !ok {
			fail("TypeError: argument after ** must be a mapping")
		}
		for i, k := range d.keys {
			name, ok := k.(Str)
			if !ok {
				fail("TypeError: keywords must be strings")
			}
			a.names, a.named = append(a.names, name.s), append(a.named, d.vals[i])
		}
	}
	return a
}

// bind assigns arguments to parameters. A parameter "name" is required, "name=" is
// optional with default None, and "name=x" has the default x: true, false or a text.
func (a args) bind(name string, params ...string) []Value {
	out := make([]Value, len(params))
	given := make([]bool, len(params))
	if len(a.pos) > len(params) {
		fail("TypeError: %s() takes %d arguments but %d were given", name, len(params), len(a.pos))
	}
	for i, v := range a.pos {
		out[i], given[i] = v, true
	}
	for i, key := range a.names {
		at := slices.IndexFunc(params, func(p string) bool { n, _, _ := strings.Cut(p, "="); return n == key })
		if at < 0 {
			fail("TypeError: %s() got an unexpected keyword argument '%s'", name, key)
		}
		if given[at] {
			fail("TypeError: %s() got multiple values for argument '%s'", name, key)
		}
		out[at], given[at] = a.named[i], true
	}
	for i, p := range params {
		if given[i] {
			continue
		}
		key, otherwise, optional := strings.Cut(p, "=")
		if !optional {
			fail("TypeError: %s() missing 1 required positional argument: '%s'", name, key)
		}
		out[i] = defaultOf(otherwise)
	}
	return out
}

func defaultOf(text string) Value {
	switch text {
	case "":
		return nil
	case "true":
		return true
	case "false":
		return false
	}
	if isDigit(text[0]) {
		return parseNumber(text)
	}
	return Text(strings.Trim(text, "'"))
}

func (n *callExpr) eval(s *state) Value {
	s.charge(1)
	f := n.of.eval(s)
	return call(s, f, n.args.eval(s))
}

// call calls a value.
func call(s *state, f Value, a args) Value {
	switch f := f.(type) {
	case *function:
		s.weigh(a.pos...)
		s.weigh(a.named...)
		return f.call(s, a)
	case *macro:
		return f.call(s, a)
	case *loop:
		return f.call(s, a)
	case *joiner:
		return f.call()
	case *undefined:
		fail("%s", f.message)
	}
	fail("TypeError: '%s' object is not callable", typeName(f))
	return nil
}

// A macro is a macro with its scope of definition.
type macro struct {
	*macroDef
	scope *scope
}

func (m *macro) call(s *state, a args) Value {
	s.enter()
	defer s.leave()
	line := s.line
	text := s.capture(func() {
		s.in(m.scope, func() {
			m.bindTo(s, a)
			execAll(s, m.body)
		})
	})
	s.line = line
	return text
}

// bindTo sets the parameters of the macro as variables of the current scope.
func (m *macro) bindTo(s *state, a args) {
	if len(a.pos) > len(m.params) && !m.varargs {
		fail("TypeError: macro '%s' takes not more than %d argument(s)", m.name, len(m.params))
	}
	s.charge(len(a.pos) + len(a.names)*(1+len(m.params)/16))
	extra := NewDict()
	var caller Value = &undefined{message: "No caller defined"}
	for i, name := range a.names {
		at := slices.Index(m.params, name)
		switch {
		case at >= 0 && at < len(a.pos):
			fail("TypeError: macro '%s' got multiple values for argument '%s'", m.name, name)
		case at >= 0:
			s.scope.set(name, a.named[i])
		case name == "caller":
			caller = a.named[i]
			if !m.macroDef.caller {
				fail("TypeError: macro '%s' was invoked with two values for the special caller argument or does not use it", m.name)
			}
		case !m.kwargs:
			fail("TypeError: macro '%s' takes no keyword argument '%s'", m.name, name)
		default:
			extra.Set(name, a.named[i])
		}
	}
	for i, name := range m.params {
		if i < len(a.pos) {
			s.scope.set(name, a.pos[i])
			continue
		}
		if slices.Contains(a.names, name) {
			continue
		}
		if at := i - (len(m.params) - len(m.defaults)); at >= 0 {
			s.scope.set(name, m.defaults[at].eval(s))
		} else {
			s.scope.set(name, &undefined{message: "parameter '" + name + "' was not provided"})
		}
	}
	if m.varargs {
		s.scope.set("varargs", newTuple(a.pos[min(len(a.pos), len(m.params)):]...))
	}
	if m.kwargs {
		s.scope.set("kwargs", extra)
	}
	if m.macroDef.caller {
		s.scope.set("caller", caller)
	}
}
