package jinja

// A loop is the loop variable of a for block.
type loop struct {
	items   []Value
	at      int
	depth0  int
	again   func(s *state, list Value) Str // only in a recursive loop
	changed []Value
	set     bool // changed was called
}

func (n *forStmt) exec(s *state) signal {
	s.line = n.line
	n.run(s, n.in.eval(s), s.scope, 0)
	return goOn
}

// run executes the loop over a list; outer is the enclosing scope.
func (n *forStmt) run(s *state, in Value, outer *scope, depth int) {
	list := items(s, in)
	if n.filter != nil {
		list = n.filtered(s, list, outer)
	}
	l := &loop{items: list, depth0: depth}
	if n.recursive {
		l.again = func(s *state, list Value) Str {
			s.enter()
			defer s.leave()
			return s.capture(func() { n.run(s, list, outer, depth+1) })
		}
	}
	if len(list) == 0 {
		s.in(outer, func() { execAll(s, n.otherwise) })
		return
	}
	for i, item := range list {
		s.charge(1)
		l.at = i
		sig := goOn
		n.with(s, item, outer, func() {
			s.scope.set("loop", l)
			sig = execAll(s, n.body)
		})
		if sig == breakLoop {
			return
		}
	}
}

// with runs f with an item of the list as the loop's variable.
func (n *forStmt) with(s *state, item Value, outer *scope, f func()) {
	s.items = append(s.items, item)
	s.in(outer, func() {
		assign(s, n.target, item)
		f()
	})
	s.items = s.items[:len(s.items)-1]
}

// filtered returns the items that satisfy the loop's condition.
func (n *forStmt) filtered(s *state, list []Value, outer *scope) (out []Value) {
	for _, item := range list {
		n.with(s, item, outer, func() {
			if test(n.filter.eval(s)) {
				out = append(out, item)
			}
		})
	}
	return out
}

// attr returns an attribute of loop.
func (l *loop) attr(name string) (Value, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.at + 1), true
	case "index0":
		return int64(l.at), true
	case "revindex":
		return int64(n - l.at), true
	case "revindex0":
		return int64(n - l.at - 1), true
	case "first":
		return l.at == 0, true
	case "last":
		return l.at == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(l.depth0 + 1), true
	case "depth0":
		return int64(l.depth0), true
	case "previtem":
		if l.at == 0 {
			return &undefined{message: "there is no previous item"}, true
		}
		return l.items[l.at-1], true
	case "nextitem":
		if l.at == n-1 {
			return &undefined{message: "there is no next item"}, true
		}
		return l.items[l.at+1], true
	case "cycle":
		return &function{"cycle", func(_ *state, a args) Value {
			if len(a.pos) == 0 {
				fail("TypeError: no items for cycling given")
			}
			return a.pos[l.at%len(a.pos)]
		}}, true
	case "changed":
		return &function{"changed", func(s *state, a args) Value {
			same := l.set && equal(s, &List{items: l.changed}, &List{items: a.pos})
			l.set, l.changed = true, a.pos
			return !same
		}}, true
	}
	return nil, false
}

// call is loop(list) inside of a recursive loop.
func (l *loop) call(s *state, a args) Value {
	if l.again == nil {
		fail("TypeError: The loop must have the 'recursive' marker to be called recursively.")
	}
	if len(a.pos) != 1 {
		fail("TypeError: loop() takes one argument, found %d", len(a.pos))
	}
	return l.again(s, a.pos[0])
}
