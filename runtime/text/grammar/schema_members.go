package grammar

// members writes the members of an object. It writes the properties on parallel rails,
// one per number of members written so far: on all but the first, a comma precedes the
// next member. Without limits on the count there are two rails.
type members struct {
	w      *schemaWriter
	o      *object
	extra  any // schema of other names
	names  []string
	lo, hi int // limits on the number of members; hi -1: no limit
	path   string
	out    int32
}

// last returns the last rail, after which the count is irrelevant or no member may
// follow.
func (m *members) last() int {
	if m.hi < 0 {
		return max(m.lo, 1)
	}
	return min(m.hi, len(m.names))
}

// after returns the rail after one more member, or -1 if no more are allowed.
func (m *members) after(rail int) int {
	switch {
	case m.hi < 0:
		return min(rail+1, m.last())
	case rail >= m.hi:
		return -1
	}
	return rail + 1
}

// another writes a member on the given rail, with its comma.
func (m *members) another(rail int, member part) part {
	if rail == 0 || m.w.mode == asArguments && !m.w.format.Python {
		return member
	}
	return m.w.b.seq(m.w.comma(), member)
}

// member writes a declared property.
func (m *members) member(name string) part {
	w, path := m.w, m.path+"/properties/"+name
	schema := w.property(m.o, name, m.path)
	if w.mode == asArguments {
		return w.argument(name, schema, path)
	}
	return w.member(w.key(name, path), w.child(schema, path))
}

func (m *members) write(required []string) part {
	const most = 1 << 14
	w, b := m.w, m.w.b
	if m.last() > 1 && m.last()*len(m.names) > most {
		return w.fail(m.path, "minProperties or maxProperties is too large for an object with %d properties", len(m.names))
	}
	rails := m.states(m.last() + 1)
	in := rails[0]
	m.out = b.state()
	must := make(map[string]bool, len(required))
	for _, name := range required {
		must[name] = true
	}
	for _, name := range m.names {
		if w.err != nil || b.err != nil {
			return b.nothing()
		}
		rule := b.rule("property " + name)
		b.define(rule, m.member(name))
		next := m.states(len(rails))
		for rail, from := range rails {
			if !must[name] {
				b.eps(from, next[rail])
			}
			if to := m.after(rail); to >= 0 && to < len(next) {
				one := m.another(rail, b.call(rule))
				b.eps(from, one.in)
				b.eps(one.out, next[to])
			}
		}
		rails = next
	}
	for rail, from := range rails {
		if rail >= m.lo {
			b.eps(from, m.out)
		}
	}
	if m.extra != false {
		m.others(rails)
	}
	return part{in, m.out}
}

func (m *members) states(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = m.w.b.state()
	}
	return list
}

// others writes the members with other names. The same name may occur twice, so all of
// them together count as one towards the minimum.
func (m *members) others(rails []int32) {
	w, b := m.w, m.w.b
	rule := b.rule("member of " + m.path)
	b.define(rule, w.freeMember(m.extra, m.names, m.path))
	n := 2 // rails after the first other member; without a limit, the last one loops
	if m.hi >= 0 {
		n = m.hi + 1
	}
	behind := m.states(n)
	step := func(from int32, rail int) {
		to := min(rail+1, n-1)
		if m.hi >= 0 && rail >= m.hi || b.err != nil {
			return
		}
		one := m.another(rail, b.call(rule))
		b.eps(from, one.in)
		b.eps(one.out, behind[to])
	}
	for rail, from := range rails {
		if rail+1 >= m.lo {
			step(from, rail)
		}
	}
	for rail, from := range behind[1:] {
		step(from, rail+1)
		b.eps(from, m.out)
	}
}
