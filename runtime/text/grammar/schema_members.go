package grammar

import "slices"

// A membersWriter writes the members of an object. It writes them on parallel rails, one
// for each number of members so far and each set of the object's conditions on members
// that are already met. On all but those without a member, a comma precedes the next
// one. Without limits on the number, one and more members share a rail.
type membersWriter struct {
	w     *schemaWriter
	o     *objectShape
	names []string
	lo    int
	hi    int // negative: no limit
	out   int32

	unique bool // no name may occur twice
}

// A rail is a number of members and a set of conditions, as bits.
type rail struct{ count, met int }

// rails are the states of rails, in the order in which they are reached.
type rails struct {
	b      *builder
	order  []rail
	states map[rail]int32
}

func newRails(b *builder) *rails { return &rails{b: b, states: map[rail]int32{}} }

// at returns the state of a rail and creates it on first use.
func (l *rails) at(r rail) int32 {
	s, ok := l.states[r]
	if !ok {
		s = l.b.state()
		l.states[r] = s
		l.order = append(l.order, r)
	}
	return s
}

const maxRails = 1 << 14

// properties writes the objects of a shape: its declared names in order, then others.
func (w *schemaWriter) properties(o *objectShape) part {
	if o == nil {
		o = &objectShape{hi: -1}
	}
	b := w.b
	names, others := w.declared(o)
	closed := w.mode.top() && !o.opened(len(names))
	if w.mode == asArguments {
		if extra := w.property(o, otherName); others && len(names) == 0 && extra.op != exprAny && extra.op != exprNone {
			return w.fail(o.path, "additionalProperties is not supported for arguments in the model's format of tool calls; list them in properties")
		}
		others = false
	}
	m := &membersWriter{w: w, o: o, names: names, lo: o.lo, hi: o.hi, out: b.state()}
	var classes []member
	if others {
		classes = w.otherMembers(o, closed)
	}
	// Another name may occur twice where this does not matter. A reader keeps the last one.
	m.unique = len(classes) > 0 && (w.exact || m.lo > len(names)+1 || slices.ContainsFunc(o.members, func(c member) bool { return c.value != w.exprs.any }))
	if m.unique {
		// So few names that an object may use up all of them are written in order, too.
		if more, ok := w.lister(len(names)+m.lo, o.path).otherNames(classes, names); ok && len(more) <= m.lo {
			m.names, m.unique, classes = append(m.names, more...), false, nil
		}
	}
	switch {
	case w.err != nil:
		return b.nothing()
	case m.unique && w.bareKeys():
		return w.fail(o.path, "minProperties %d is not supported in the model's format of tool calls; list more properties", m.lo)
	case len(o.members) > maxConditions:
		return w.fail(o.path, "more than %d conditions on undeclared properties are not supported", maxConditions)
	case len(classes) == 0 && m.lo > len(m.names):
		return b.nothing()
	case len(classes) == 0 && m.hi >= len(m.names):
		m.hi = -1
	}
	inside := m.write(classes)
	if w.mode == asArguments {
		return inside
	}
	return w.brackets('{', '}', m.unique, inside)
}

// maxConditions limits the conditions on members of one object.
const maxConditions = 4

// last returns the number of members after which the number is irrelevant or no member
// may follow.
func (m *membersWriter) last(declared bool) int {
	switch {
	case m.hi < 0:
		return max(m.lo, 1)
	case declared:
		return min(m.hi, len(m.names))
	}
	return m.hi
}

// write writes the declared names, then members of the given classes.
func (m *membersWriter) write(classes []member) part {
	w, b := m.w, m.w.b
	every := len(classes) == 0 && m.lo == len(m.names)
	if every {
		m.lo = 0 // because each name is required
	}
	if m.last(true) > 1 && m.last(true)*len(m.names)<<len(m.o.members) > maxRails {
		return w.fail(m.o.path, "minProperties or maxProperties is too large for an object with %d properties", len(m.names))
	}
	must := make(map[string]bool, len(m.o.required))
	for _, name := range m.o.required {
		must[name] = true
	}
	known := make(map[string]bool, len(m.names))
	for _, name := range m.names {
		known[name] = true
	}
	if slices.ContainsFunc(m.o.required, func(name string) bool { return !known[name] }) {
		return b.nothing() // propertyNames excludes it
	}
	before := newRails(b)
	in := before.at(rail{})
	for _, name := range m.names {
		if w.err != nil || b.err != nil {
			return b.nothing()
		}
		next := newRails(b)
		options := m.options(name)
		for _, r := range before.order {
			if !must[name] && !every {
				b.eps(before.at(r), next.at(r))
			}
			m.step(r, before.at(r), next, options, true)
		}
		before = next
	}
	for _, r := range before.order {
		m.end(r, before.at(r))
	}
	if len(classes) > 0 {
		m.others(before, classes)
	}
	return part{in, m.out}
}

// step writes another member after the state of a rail.
func (m *membersWriter) step(r rail, from int32, next *rails, options []option, declared bool) {
	b := m.w.b
	for _, o := range options {
		to, ok := m.after(r, o.met, declared)
		if !ok || m.w.err != nil || b.err != nil {
			continue
		}
		one := m.another(r, b.call(o.rule))
		b.eps(from, one.in)
		b.eps(one.out, next.at(to))
	}
}

// end lets the object end after a rail.
func (m *membersWriter) end(r rail, state int32) {
	if r.count >= m.lo && r.met == 1<<len(m.o.members)-1 {
		m.w.b.eps(state, m.out)
	}
}

// after returns the rail after another member that meets conditions, and whether it is
// allowed.
func (m *membersWriter) after(r rail, met int, declared bool) (rail, bool) {
	if m.hi >= 0 && r.count >= m.hi || met&^r.met != met {
		return r, false // met before: the option that ignores the condition covers it
	}
	return rail{min(r.count+1, m.last(declared)), r.met | met}, true
}

// another writes a member on a rail, with its comma.
func (m *membersWriter) another(r rail, p part) part {
	if r.count == 0 || m.w.mode == asArguments && !m.w.format.Python {
		return p
	}
	return m.w.b.seq(m.w.comma(), p)
}

// An option is a rule for a member that meets conditions.
type option struct {
	rule int32
	met  int
}

// options returns the ways to write a declared name.
func (m *membersWriter) options(name string) []option {
	w, b := m.w, m.w.b
	value := w.property(m.o, name)
	var out []option
	for met := range 1 << len(m.o.members) {
		list := []*expr{value}
		possible := true
		for i, c := range m.o.members {
			if met>>i&1 == 1 {
				possible = possible && w.holds(name, c.name)
				list = append(list, c.value)
			}
		}
		one := w.all(list...)
		if !possible || one == w.exprs.none {
			continue
		}
		rule := b.rule("property " + name)
		b.define(rule, m.named(name, one))
		out = append(out, option{rule, met})
	}
	return out
}

// named writes a declared name and its value.
func (m *membersWriter) named(name string, value *expr) part {
	w := m.w
	if w.mode == asArguments {
		return w.argument(name, value, m.o.path+"/properties/"+name)
	}
	return w.member(w.key(name, m.o.path+"/properties/"+name), w.child(value))
}

// others writes members with other names. Unless names are unique, all of them together
// count as one towards the minimum.
func (m *membersWriter) others(before *rails, classes []member) {
	behind := newRails(m.w.b)
	options := m.otherOptions(classes)
	for _, r := range before.order {
		if r.count+1 >= m.lo || m.unique {
			m.step(r, before.at(r), behind, options, false)
		}
	}
	for i := 0; i < len(behind.order); i++ {
		if !m.w.spend(8, m.o.path) || len(behind.order) > maxRails {
			m.w.fail(m.o.path, "maxProperties %d is too large here", m.hi)
			return
		}
		r := behind.order[i]
		m.end(r, behind.at(r))
		m.step(r, behind.at(r), behind, options, false)
	}
}

// otherOptions returns the ways to write other members.
func (m *membersWriter) otherOptions(classes []member) []option {
	w, b := m.w, m.w.b
	var options []option
	for _, class := range classes {
		for met := range 1 << len(m.o.members) {
			names, values := []*expr{class.name}, []*expr{class.value}
			for i, c := range m.o.members {
				if met>>i&1 == 1 {
					names, values = append(names, c.name), append(values, c.value)
				}
			}
			name, value := w.all(names...), w.all(values...)
			if name == w.exprs.none || value == w.exprs.none {
				continue
			}
			rule := b.rule("member of " + m.o.path)
			b.define(rule, w.member(m.otherKey(name), w.child(value)))
			options = append(options, option{rule, met})
		}
	}
	return options
}

// otherName stands for a name that matches no pattern.
const otherName = "\x00"

// otherMembers returns the classes of members with other names than the given ones: one
// for each set of patterns that a name can match. In a closed object it matches one.
func (w *schemaWriter) otherMembers(o *objectShape, closed bool) []member {
	const most = 8
	var patterns []*expr
	for _, f := range o.fields {
		for _, p := range f.patterns {
			if !slices.Contains(patterns, p.name) {
				patterns = append(patterns, p.name)
			}
		}
	}
	if len(patterns) > most {
		w.fail(o.path, "more than %d different patternProperties of one object are not supported", most)
		return nil
	}
	var out []member
	for set := range 1 << len(patterns) {
		if closed && set == 0 {
			continue
		}
		list := slices.Clone(o.keys)
		for i, p := range patterns {
			if set>>i&1 == 1 {
				list = append(list, p)
			} else {
				list = append(list, w.not(p))
			}
		}
		matches := func(p *expr) bool { return set>>slices.Index(patterns, p)&1 == 1 }
		name, value := w.all(list...), w.otherValue(o, matches)
		if value != w.exprs.none && name != w.exprs.none && w.possibleName(name, o.path) {
			out = append(out, member{name, value})
		}
	}
	return out
}

// otherValue returns the node of the values of undeclared names that match patterns.
func (w *schemaWriter) otherValue(o *objectShape, matches func(*expr) bool) *expr {
	var list []*expr
	for _, f := range o.fields {
		value := f.extra
		some := false
		for _, p := range f.patterns {
			if matches(p.name) {
				list = append(list, p.value)
				some = true
			}
		}
		if !some {
			list = append(list, value)
		}
	}
	return w.all(list...)
}

// possibleName reports whether a string can be in a node.
func (w *schemaWriter) possibleName(name *expr, path string) bool {
	return slices.ContainsFunc(w.shapes(name, false)[kindString], func(s *shape) bool { return !w.emptyShape(kindString, s, path, 0) })
}

// otherKey writes the names in an expression that are not declared.
func (m *membersWriter) otherKey(name *expr) part {
	w := m.w
	before := w.exact
	w.exact = before || m.unique
	defer func() { w.exact = before }()
	if name == w.exprs.any {
		return w.freeKey(m.names)
	}
	if w.bareKeys() {
		return w.fail(name.path, "propertyNames and patternProperties are not supported in the model's format of tool calls; list the properties")
	}
	return w.b.alt(w.texts(w.shapes(w.all(name, w.not(w.wordsNode(m.names, name.path))), false)[kindString], name.path)...)
}
