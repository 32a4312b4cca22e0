package jinja

// execAll executes statements until one leaves the enclosing loop.
func execAll(s *state, body []stmt) signal {
	for _, st := range body {
		s.charge(1)
		if sig := st.exec(s); sig != goOn {
			return sig
		}
	}
	return goOn
}

func (n *textStmt) exec(s *state) signal {
	s.write(Text(n.text))
	return goOn
}

func (n *printStmt) exec(s *state) signal {
	s.line = n.line
	s.write(toStr(s, n.of.eval(s)))
	return goOn
}

func (n *ifStmt) exec(s *state) signal {
	s.line = n.line
	if test(n.test.eval(s)) {
		return execAll(s, n.yes)
	}
	return execAll(s, n.no)
}

// test returns the truth of a value; an unsafe method is an error.
func test(v Value) bool {
	if u, ok := v.(*undefined); ok && u.unsafe {
		fail("%s", u.message)
	}
	return truth(v)
}

func (n *setStmt) exec(s *state) signal {
	s.line = n.line
	assign(s, n.target, n.value.eval(s))
	return goOn
}

func (n *setBlockStmt) exec(s *state) signal {
	s.line = n.line
	var text Value = s.capture(func() { s.in(s.scope, func() { execAll(s, n.body) }) })
	if n.filter != nil {
		text = n.filter.apply(s, text)
	}
	assign(s, n.target, text)
	return goOn
}

// assign assigns a value to a target.
func assign(s *state, t target, v Value) {
	switch {
	case t.tuple != nil:
		list := items(s, v)
		if len(list) < len(t.tuple) {
			fail("ValueError: not enough values to unpack (expected %d, got %d)", len(t.tuple), len(list))
		}
		if len(list) > len(t.tuple) {
			fail("ValueError: too many values to unpack (expected %d)", len(t.tuple))
		}
		for i, to := range t.tuple {
			assign(s, to, list[i])
		}
	case t.attr != "":
		at, _ := s.scope.get(t.name)
		ns, ok := at.(*namespace)
		if !ok {
			fail("cannot assign attribute on non-namespace object")
		}
		ns.vars.Set(t.attr, v)
	default:
		s.scope.set(t.name, v)
	}
}

func (n *macroStmt) exec(s *state) signal {
	s.line = n.line
	s.scope.set(n.def.name, &macro{macroDef: n.def, scope: s.scope})
	return goOn
}

func (n *callStmt) exec(s *state) signal {
	s.line = n.line
	caller := &macro{macroDef: n.caller, scope: s.scope}
	f := n.call.of.eval(s)
	a := n.call.args.eval(s)
	a.names, a.named = append(a.names, "caller"), append(a.named, caller)
	s.write(toStr(s, call(s, f, a)))
	return goOn
}

func (n *filterStmt) exec(s *state) signal {
	s.line = n.line
	text := s.capture(func() { s.in(s.scope, func() { execAll(s, n.body) }) })
	s.write(toStr(s, n.filter.apply(s, text)))
	return goOn
}

func (n *withStmt) exec(s *state) (sig signal) {
	s.line = n.line
	values := make([]Value, len(n.values))
	for i, v := range n.values {
		values[i] = v.eval(s)
	}
	s.in(s.scope, func() {
		for i, t := range n.targets {
			assign(s, t, values[i])
		}
		sig = execAll(s, n.body)
	})
	return sig
}

func (n *blockStmt) exec(s *state) (sig signal) {
	s.in(s.scope, func() { sig = execAll(s, n.body) })
	return sig
}

func (n *loopStmt) exec(*state) signal { return n.signal }
