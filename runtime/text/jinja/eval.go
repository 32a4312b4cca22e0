package jinja

func (n *constExpr) eval(*state) Value { return n.value }

func (n *nameExpr) eval(s *state) Value {
	s.charge(1)
	if v, ok := s.scope.get(n.name); ok {
		return v
	}
	return &undefined{message: "'" + n.name + "' is undefined"}
}

func (n *listExpr) eval(s *state) Value {
	items := make([]Value, len(n.items))
	for i, e := range n.items {
		items[i] = e.eval(s)
	}
	s.charge(1 + len(items))
	return &List{items: items, tuple: n.tuple}
}

func (n *dictExpr) eval(s *state) Value {
	d := NewDict()
	for i, k := range n.keys {
		key := k.eval(s)
		if !d.put(s, key, n.values[i].eval(s)) {
			fail("TypeError: unhashable type: '%s'", typeName(key))
		}
	}
	s.charge(1 + len(n.keys))
	return d
}

func (n *condExpr) eval(s *state) Value {
	if test(n.test.eval(s)) {
		return n.yes.eval(s)
	}
	if n.no == nil {
		return &undefined{message: "the inline if-expression evaluated to false and no else section was defined."}
	}
	return n.no.eval(s)
}

func (n *notExpr) eval(s *state) Value { return !test(n.of.eval(s)) }

func (n *logicExpr) eval(s *state) Value {
	x := n.x.eval(s)
	if test(x) != n.and {
		return x
	}
	return n.y.eval(s)
}

func (n *concatExpr) eval(s *state) Value {
	var b builder
	for _, e := range n.items {
		b.add(toStr(s, e.eval(s)))
		s.checkLen(len(b.b))
	}
	return s.made(b.str())
}

func (n *compareExpr) eval(s *state) Value {
	x := n.first.eval(s)
	for i, op := range n.ops {
		y := n.rest[i].eval(s)
		if !compare(s, op, x, y) {
			return false
		}
		x = y
	}
	return true
}

func (n *signExpr) eval(s *state) Value {
	v := n.of.eval(s)
	if u, ok := v.(*undefined); ok {
		fail("%s", u.message)
	}
	i, f, isFloat, ok := number(v)
	switch {
	case !ok && n.negative:
		fail("TypeError: bad operand type for unary -: '%s'", typeName(v))
	case !ok:
		fail("TypeError: bad operand type for unary +: '%s'", typeName(v))
	case isFloat && n.negative:
		return -f
	case isFloat:
		return f
	case n.negative:
		return -i
	}
	return i
}

func (n *filterExpr) eval(s *state) Value { return n.apply(s, nil) }

// apply runs the filter; body is the input of the first filter of a filter block.
func (n *filterExpr) apply(s *state, body Value) Value {
	s.charge(1)
	v := body
	switch of := n.of.(type) {
	case nil:
	case *filterExpr:
		v = of.apply(s, body)
	default:
		v = of.eval(s)
	}
	a := n.args.eval(s)
	return filter(s, n.name, v, a)
}

// filter runs the filter with a name.
func filter(s *state, name string, v Value, a args) Value {
	f, ok := s.filters[name]
	if !ok {
		fail("No filter named '%s'.", name)
	}
	a.pos = append([]Value{v}, a.pos...)
	s.weigh(a.pos...)
	s.weigh(a.named...)
	return f(s, a)
}

func (n *testExpr) eval(s *state) Value {
	s.charge(1)
	v := n.of.eval(s)
	return runTest(s, n.name, v, n.args.eval(s))
}

// runTest runs the test with a name.
func runTest(s *state, name string, v Value, a args) bool {
	t, ok := s.tests[name]
	if !ok {
		fail("No test named '%s'.", name)
	}
	a.pos = append([]Value{v}, a.pos...)
	s.weigh(a.pos...)
	return t(s, a)
}

func (n *binaryExpr) eval(s *state) Value {
	s.charge(1)
	return binary(s, n.op, n.x.eval(s), n.y.eval(s))
}

func (n *attrExpr) eval(s *state) Value {
	s.charge(1)
	return attr(n.of.eval(s), n.name)
}

func (n *itemExpr) eval(s *state) Value {
	s.charge(1)
	of, key := n.of.eval(s), n.key.eval(s)
	s.weigh(key)
	return item(s, of, key)
}

// items lists the items of an iterable value.
func items(s *state, v Value) []Value {
	switch v := v.(type) {
	case *List:
		s.charge(len(v.items) / 16)
		return v.items
	case *Dict:
		s.charge(len(v.keys) / 16)
		return v.keys
	case Str:
		s.charge(len(v.s))
		return v.chars()
	case *view:
		s.charge(len(v.dict.keys))
		return v.items()
	case *generator:
		s.charge(len(v.items) / 16)
		list := v.items
		v.items = nil
		return list
	case pyRange:
		n := v.len()
		s.charge(n)
		out := make([]Value, n)
		for i := range out {
			out[i] = v.at(i)
		}
		return out
	case *undefined:
		if v.unsafe {
			fail("%s", v.message)
		}
		return nil
	}
	fail("TypeError: '%s' object is not iterable", typeName(v))
	return nil
}
