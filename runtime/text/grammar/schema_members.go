package grammar

// members writes the inside of an object that has properties. It runs over
// them on rails that count what has been written: from all but the first a
// comma must stand before the next member. Where nothing counts there are two.
type members struct {
	w      *schemaWriter
	o      *object
	extra  any // the schema of other names
	names  []string
	lo, hi int // of members; hi -1: no limit
	path   string
	out    int32
}

// last is the rail from which on nothing counts, or no member may follow.
func (m *members) last() int {
	if m.hi < 0 {
		return max(m.lo, 1)
	}
	return min(m.hi, len(m.names))
}

// after is the rail behind one more member, -1 where there may be none.
func (m *members) after(rail int) int {
	switch {
	case m.hi < 0:
		return min(rail+1, m.last())
	case rail >= m.hi:
		return -1
	}
	return rail + 1
}

// another writes a member behind a number of others.
func (m *members) another(rail int, member part) part {
	if rail == 0 {
		return member
	}
	return m.w.b.seq(m.w.comma(), member)
}

func (m *members) write(required []string) part {
	const most = 1 << 14
	w, b := m.w, m.w.b
	if m.last() > 1 && m.last()*len(m.names) > most {
		return w.fail(m.path, "minProperties or maxProperties beside %d properties is too large", len(m.names))
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
		b.define(rule, w.member(w.text(writeJSON(name)), w.child(w.property(m.o, name, m.path), m.path+"/properties/"+name)))
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

// others writes the members of other names. Of these one may come twice, so
// that all together count as one towards the minimum.
func (m *members) others(rails []int32) {
	w, b := m.w, m.w.b
	rule := b.rule("member of " + m.path)
	b.define(rule, w.freeMember(m.extra, m.names, m.path))
	n := 2 // rails behind the first other: no limit, one that comes back to itself
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
