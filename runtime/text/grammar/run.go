package grammar

import (
	"errors"
	"slices"
)

// A run says which texts a position allows at least: a character of head, then up to
// length-1 characters of tail. Inside a JSON string these are almost all tokens of a
// vocabulary, so the walk over its trie need not visit them.
type run struct {
	head, tail runeSet
	length     int  // of the longest text, in characters; endless: any; 0: there is no run
	sealed     bool // no longer text of such characters is allowed
}

// spells reports whether the run has the last byte of a node, if it has the bytes before.
func (r *run) spells(n *node) bool {
	set := &r.tail
	switch {
	case n.chars == 1:
		set = &r.head
	case n.chars == 0:
		return false
	}
	return set.has(memberOf(n.b)) // no run has broken
}

// decides reports whether the run decides about all tokens of a node's subtree, if it has
// the bytes up to the node.
func (r *run) decides(n *node) bool {
	return n.below.within(r.tail) && (r.length == endless || r.sealed || int(n.chars)+int(n.longest) <= r.length)
}

const (
	endless = 1 << 30
	// mostRun is the length of the longest run that is not endless, less one. With 8, the
	// masks of strings of at most 200 characters took five times as long; 64 was not faster.
	// Few tokens have more characters, and the walk visits them.
	mostRun = 32
	// leastRun is the number of ASCII characters that make a run worth finding: more than
	// digits. Values from 4 to 32 made no difference to the schemas of tools/check/masks.
	leastRun = 16
	// runVisits is the number of states that the search for a run may visit. The schemas of
	// tools/check/masks take 25,000.
	runVisits = 64 << 10
)

// A majority is the position that most characters lead to from another one.
type majority struct {
	to    *position // nil: dead
	runes runeSet
}

// majority returns the position that most of the ASCII characters lead to, and all
// characters that lead there. The caller must hold g.mu.
func (g *Grammar) majority(p *position) (*majority, error) {
	if p.majority != nil {
		return p.majority, nil
	}
	type group struct {
		to    *position
		runes runeSet
		size  int
	}
	var groups []group
	best := -1
	for class := range g.alike {
		alike := &g.alike[class]
		if alike.size == 0 {
			continue
		}
		if g.visits > g.enough {
			return nil, errLongRun
		}
		q, err := g.step(p, g.samples[class])
		if err != nil {
			return nil, err
		}
		if q == dead {
			continue
		}
		i := slices.IndexFunc(groups, func(o group) bool { return o.to == q })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{to: q})
		}
		groups[i].runes = groups[i].runes.union(alike.runes)
		groups[i].size += alike.size
		if best < 0 || groups[i].size > groups[best].size {
			best = i
		}
	}
	m := &majority{}
	if best >= 0 && groups[best].size >= leastRun {
		m.to, m.runes = groups[best].to, groups[best].runes
		q, err := g.beyond(p)
		if err != nil {
			return nil, err
		}
		if q == m.to {
			m.runes.add(beyond)
		}
	}
	p.majority = m
	g.memory.add(runBytes / 2)
	return m, nil
}

// run returns the run at p. The caller must hold g.mu.
func (g *Grammar) run(p *position) *run {
	if p.run == nil {
		g.enough = g.visits + runVisits
		r, err := g.findRun(p)
		if err != nil { // the walk over the tokens takes over
			r = &run{}
		}
		p.run = r
		g.memory.add(runBytes / 2)
	}
	return p.run
}

// errLongRun ends a search for a run that takes too long.
var errLongRun = errors.New("the search for a run takes too long")

func (g *Grammar) findRun(p *position) (*run, error) {
	first, err := g.majority(p)
	if err != nil || first.to == nil {
		return &run{}, err
	}
	at := first.to
	next, err := g.majority(at)
	if err != nil {
		return nil, err
	}
	r := &run{head: first.runes, tail: next.runes, length: 1}
	if next.to == nil {
		r.tail = r.head
	} else if r.head = r.head.intersect(r.tail); r.head == (runeSet{}) {
		return &run{}, nil
	}
	for next.to != nil && r.tail.within(next.runes) {
		if next.to == at {
			r.length = endless
			return r, nil
		}
		if r.length++; r.length > mostRun {
			return r, nil
		}
		at = next.to
		if next, err = g.majority(at); err != nil {
			return nil, err
		}
	}
	r.sealed, err = g.refuses(at, r.tail)
	return r, err
}

// refuses reports whether p allows no character of s.
func (g *Grammar) refuses(p *position, s runeSet) (bool, error) {
	for class, c := range g.samples {
		a := &g.alike[class]
		if !a.runes.meets(s) && !(a.beyond && s.has(beyond)) {
			continue
		}
		q, err := g.step(p, c)
		if err != nil || q != dead {
			return false, err
		}
	}
	return true, nil
}

// beyond returns the position after any character of several bytes, or dead if they do
// not all lead to the same one.
func (g *Grammar) beyond(p *position) (*position, error) {
	var after []config
	for _, c := range p.configs {
		switch to := g.wide(c.state); to {
		case noWide:
		case someWide:
			return dead, nil
		default:
			after = append(after, config{to, c.frame})
		}
	}
	return g.after(after)
}

// What wide returns instead of a state.
const (
	unknownWide = iota - 3
	someWide    // some characters of several bytes are allowed, or they lead to several states
	noWide      // none is allowed
)

// wide returns the state that every character of several bytes leads to from s.
func (g *Grammar) wide(s int32) int32 {
	st := &g.states[s]
	if st.wide != unknownWide {
		return st.wide
	}
	st.wide = noWide
	if slices.ContainsFunc(st.edges, func(e edge) bool { return e.hi >= 0x80 }) {
		st.wide = someWide
		to := noWide
		for _, e := range encodings {
			if !g.covers(s, e, &to) {
				return someWide
			}
		}
		st.wide = int32(to)
	}
	return st.wide
}

// covers reports whether all texts of the ranges lead from s to the same state: to, unless
// it is noWide, when covers sets it.
func (g *Grammar) covers(s int32, ranges []byteRange, to *int) bool {
	if len(ranges) == 0 {
		if *to == noWide {
			*to = int(s)
		}
		return *to == int(s)
	}
	st := &g.states[s]
	need := int(ranges[0].hi) - int(ranges[0].lo) + 1
	for i, e := range st.edges {
		lo, hi := max(e.lo, ranges[0].lo), min(e.hi, ranges[0].hi)
		if lo > hi {
			continue
		}
		if slices.ContainsFunc(st.edges[:i], func(o edge) bool { return o.lo <= hi && lo <= o.hi }) {
			return false
		}
		need -= int(hi) - int(lo) + 1
		next := &g.states[e.to]
		if len(ranges) > 1 && (len(next.eps)+len(next.calls) > 0 || next.final) || !g.covers(e.to, ranges[1:], to) {
			return false
		}
	}
	return need == 0
}
