package regexp

import (
	"fmt"
	"unicode/utf8"
)

// A Regexp is a compiled backtracking matcher with Oniguruma's semantics on UTF-8 text.
// A step budget bounds the time of patterns with catastrophic backtracking; see
// FindAll.
type Regexp struct {
	start *node
	loops int
}

type nodeOp uint8

const (
	opAccept nodeOp = iota
	opSet
	opSetLoop // greedy, lazy or possessive repeat of one class
	opAlt     // alternatives in order
	opLoop    // repeat of a group: kids[0] is the body, which returns here; kids[1] is the continuation
	opLook    // kids[0] is the body, ending in opAccept
	opAtomic  // kids[0] is the body, ending in opAccept
	opAnchor
)

type node struct {
	op       nodeOp
	mode     byte
	negated  bool
	behind   bool
	min, max int
	loop     int
	class    *Class
	next     *node
	kids     []*node
	first    []*firstSet // opAlt: possible first bytes of each alternative
}

// Compile parses and compiles a pattern.
func Compile(src string) (*Regexp, error) {
	tree, err := parse(src)
	if err != nil {
		return nil, err
	}
	c := &compiler{classes: map[string]*Class{}}
	start, err := c.compile(tree, &node{op: opAccept})
	if err != nil {
		return nil, fmt.Errorf("regex %.80q: %w", src, err)
	}
	return &Regexp{start: start, loops: c.loops}, nil
}

const maxNodes = 20000

type compiler struct {
	nodes, loops int
	classes      map[string]*Class
}

func (c *compiler) class(s Set) *Class {
	key := string(s)
	if known, ok := c.classes[key]; ok {
		return known
	}
	made := NewClass(s)
	c.classes[key] = made
	return made
}

// compile translates a syntax tree to nodes that continue with next.
func (c *compiler) compile(t *ast, next *node) (*node, error) {
	if c.nodes++; c.nodes > maxNodes {
		return nil, fmt.Errorf("pattern unrolls to more than %d nodes", maxNodes)
	}
	switch t.kind {
	case astSet:
		return &node{op: opSet, class: c.class(t.set), next: next}, nil
	case astSeq:
		var err error
		for i := len(t.kids) - 1; i >= 0 && err == nil; i-- {
			next, err = c.compile(t.kids[i], next)
		}
		return next, err
	case astAlt:
		return c.alternatives(t, next)
	case astRepeat:
		return c.repeat(t, next)
	case astLook, astAtomic:
		body, err := c.compile(t.kids[0], &node{op: opAccept})
		if err != nil {
			return nil, err
		}
		op := opAtomic
		if t.kind == astLook {
			op = opLook
		}
		return &node{op: op, negated: t.negated, behind: t.behind, kids: []*node{body}, next: next}, nil
	case astAnchor:
		return &node{op: opAnchor, mode: t.mode, next: next}, nil
	}
	return next, nil
}

func (c *compiler) alternatives(t *ast, next *node) (*node, error) {
	n := &node{op: opAlt}
	for _, kid := range t.kids {
		k, err := c.compile(kid, next)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, k)
		n.first = append(n.first, firstOf(k))
	}
	return n, nil
}

func (c *compiler) repeat(t *ast, next *node) (*node, error) {
	body := t.kids[0]
	for body.kind == astSeq && len(body.kids) == 1 {
		body = body.kids[0]
	}
	if body.kind == astSet {
		hi := t.max
		if hi < 0 {
			hi = int(^uint(0) >> 1)
		}
		return &node{op: opSetLoop, mode: t.mode, min: t.min, max: hi, class: c.class(body.set), next: next}, nil
	}
	if t.mode == 'p' {
		greedy := &ast{kind: astRepeat, kids: t.kids, min: t.min, max: t.max, mode: 'g'}
		return c.compile(&ast{kind: astAtomic, kids: []*ast{greedy}}, next)
	}
	tail, err := c.optionalPart(t, body, next)
	for i := 0; i < t.min && err == nil; i++ {
		tail, err = c.compile(body, tail)
	}
	return tail, err
}

// optionalPart compiles the repetitions beyond the minimum.
func (c *compiler) optionalPart(t *ast, body *ast, next *node) (*node, error) {
	if t.max < 0 {
		loop := &node{op: opLoop, mode: t.mode, loop: c.loops, kids: []*node{nil, next}}
		c.loops++
		inner, err := c.compile(body, loop)
		loop.kids[0] = inner
		return loop, err
	}
	tail := next
	for i := t.min; i < t.max; i++ {
		inner, err := c.compile(body, tail)
		if err != nil {
			return nil, err
		}
		kids := []*node{inner, next}
		if t.mode == 'l' {
			kids = []*node{next, inner}
		}
		tail = &node{op: opAlt, kids: kids, first: []*firstSet{firstOf(kids[0]), firstOf(kids[1])}}
	}
	return tail, nil
}

// firstSet is the set of ASCII bytes that can begin a match; bytes beyond ASCII are not
// excluded. A nil firstSet excludes nothing.
type firstSet [2]uint64

func (f *firstSet) admits(s string, pos int) bool {
	if f == nil {
		return true
	}
	if pos >= len(s) {
		return false
	}
	b := s[pos]
	return b >= utf8.RuneSelf || f[b>>6]&(1<<(b&63)) != 0
}

// firstOf returns the firstSet of a node with a simple start, else nil.
func firstOf(n *node) *firstSet {
	switch n.op {
	case opSet:
		return &firstSet{n.class.bmp[0], n.class.bmp[1]}
	case opSetLoop:
		f := &firstSet{n.class.bmp[0], n.class.bmp[1]}
		if n.min > 0 {
			return f
		}
		rest := firstOf(n.next)
		if rest == nil {
			return nil
		}
		f[0] |= rest[0]
		f[1] |= rest[1]
		return f
	case opAlt:
		all := &firstSet{}
		for _, kid := range n.first {
			if kid == nil {
				return nil
			}
			all[0] |= kid[0]
			all[1] |= kid[1]
		}
		return all
	}
	return nil
}
