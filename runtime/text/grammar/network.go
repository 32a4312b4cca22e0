package grammar

import (
	"errors"
	"fmt"
	"slices"
)

// Limits of one grammar: far above practical needs, and low enough to stop hostile
// grammars early.
const (
	maxStates  = 1 << 18
	maxDepth   = 200 // nesting of a schema, a regular expression or groups
	maxSource  = 1 << 20
	maxSteps   = 1 << 21 // steps of the analysis
	maxConfigs = 1 << 12 // configs of one position
)

// ErrTooLarge reports that a grammar exceeds a limit.
var ErrTooLarge = errors.New("grammar is too large")

// A state of the network. Edges consume a byte, eps transitions consume nothing; a call
// enters the start of a rule and returns to ret.
type state struct {
	eps   []int32
	edges []edge
	calls []call
	final bool  // end of its rule
	tail  bool  // reaches only the end of the rule, without a byte: calls need not return here
	wide  int32 // see Grammar.wide

	unique bool // its byte opens a container with unique items; see history
}

type edge struct {
	lo, hi byte // inclusive
	to     int32
}

type call struct{ rule, ret int32 }

type rule struct {
	name       string
	start, end int32
	defined    bool
	nullable   bool // matches the empty text
	productive bool // matches some text
}

// A part is a fragment of the network with one entry and one exit.
type part struct{ in, out int32 }

// A builder builds the network. After an error, such as an exceeded limit, it adds
// nothing more, and finish returns the error.
type builder struct {
	states []state
	rules  []rule
	err    error
	unique bool // some state is unique

	compact bool             // all characters beyond ASCII are rules
	classes map[string]int32 // rules of classes of characters; see shared

	callees [][]int32 // of each rule
	steps   int       // of the analysis so far
}

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) state() int32 {
	if len(b.states) >= maxStates {
		b.fail(fmt.Errorf("%w: more than %d states", ErrTooLarge, maxStates))
		return 0
	}
	b.states = append(b.states, state{})
	return int32(len(b.states) - 1)
}

func (b *builder) eps(from, to int32) {
	b.states[from].eps = append(b.states[from].eps, to)
}

// empty matches the empty text.
func (b *builder) empty() part {
	s := b.state()
	return part{s, s}
}

// nothing matches no text.
func (b *builder) nothing() part { return part{b.state(), b.state()} }

// bytes matches one byte from lo to hi.
func (b *builder) bytes(lo, hi byte) part {
	p := b.nothing()
	b.states[p.in].edges = append(b.states[p.in].edges, edge{lo, hi, p.out})
	return p
}

// literal matches a text, with one state per byte.
func (b *builder) literal(text string) part {
	if len(b.states)+len(text) >= maxStates {
		b.fail(fmt.Errorf("%w: more than %d states", ErrTooLarge, maxStates))
		return b.nothing()
	}
	p := b.empty()
	for i := range len(text) {
		to := b.state()
		b.states[p.out].edges = append(b.states[p.out].edges, edge{text[i], text[i], to})
		p.out = to
	}
	return p
}

func (b *builder) seq(parts ...part) part {
	if len(parts) == 0 {
		return b.empty()
	}
	for i := 1; i < len(parts); i++ {
		b.eps(parts[i-1].out, parts[i].in)
	}
	return part{parts[0].in, parts[len(parts)-1].out}
}

// alt matches one of the parts; without parts, no text.
func (b *builder) alt(parts ...part) part {
	if len(parts) == 1 {
		return parts[0]
	}
	p := b.nothing()
	for _, q := range parts {
		b.eps(p.in, q.in)
		b.eps(q.out, p.out)
	}
	return p
}

func (b *builder) optional(p part) part {
	q := b.nothing()
	b.eps(q.in, p.in)
	b.eps(p.out, q.out)
	b.eps(q.in, q.out)
	return q
}

// star matches p any number of times.
func (b *builder) star(p part) part {
	s := b.state()
	b.eps(s, p.in)
	b.eps(p.out, s)
	return part{s, s}
}

// call matches the texts of a rule.
func (b *builder) call(rule int32) part {
	p := b.nothing()
	b.states[p.in].calls = append(b.states[p.in].calls, call{rule, p.out})
	return p
}

// repeat matches the part of make at least lo and at most hi times (hi < 0: any number).
func (b *builder) repeat(lo, hi int, make func() part) part {
	from := len(b.states)
	return b.repeatPart(make(), from, lo, hi)
}

// repeatPart is repeat for a part that consists of the states with the number from and
// above. A small part is copied, a large one becomes a rule that is called each time.
func (b *builder) repeatPart(first part, from, lo, hi int) part {
	const inline = 16
	if lo == 0 && hi < 0 {
		return b.star(first)
	}
	made, original := slices.Clone(b.states[from:]), first
	next := func() part { return b.copied(made, int32(from), original) }
	if len(made) > inline {
		r := b.rule("repeated")
		b.define(r, first)
		next = func() part { return b.call(r) }
		first = next()
	}
	p := b.empty()
	one := func() part {
		q := first
		if q.in < 0 {
			return next()
		}
		first.in = -1
		return q
	}
	for range lo {
		if b.err != nil {
			return p
		}
		p = b.seq(p, one())
	}
	if hi < 0 {
		return b.seq(p, b.star(one()))
	}
	end := b.state()
	at := p
	for range hi - lo {
		if b.err != nil {
			return p
		}
		b.eps(at.out, end)
		at = b.seq(at, one())
	}
	b.eps(at.out, end)
	return part{p.in, end}
}

// copied adds a copy of states, the first of which had the number from, and returns the
// copy of a part that consists of them.
func (b *builder) copied(states []state, from int32, p part) part {
	shift := int32(len(b.states)) - from
	for _, s := range states {
		c := b.state()
		if b.err != nil {
			return p
		}
		s.eps, s.edges, s.calls = slices.Clone(s.eps), slices.Clone(s.edges), slices.Clone(s.calls)
		for i := range s.eps {
			s.eps[i] += shift
		}
		for i := range s.edges {
			s.edges[i].to += shift
		}
		for i := range s.calls {
			s.calls[i].ret += shift
		}
		b.states[c] = s
	}
	return part{p.in + shift, p.out + shift}
}

// rule adds a rule, to be defined later.
func (b *builder) rule(name string) int32 {
	if len(b.rules) >= maxStates {
		b.fail(fmt.Errorf("%w: more than %d rules", ErrTooLarge, maxStates))
		return 0
	}
	b.rules = append(b.rules, rule{name: name, start: -1, end: -1})
	return int32(len(b.rules) - 1)
}

func (b *builder) define(r int32, p part) {
	start, end := b.state(), b.state()
	b.eps(start, p.in)
	b.eps(p.out, end)
	b.rules[r].start, b.rules[r].end, b.rules[r].defined = start, end, true
	b.states[end].final = true
}
