package grammar

import (
	"fmt"
	"slices"
)

const maxCode = 20000

// newProgram compiles a pattern. It matches a text that contains the pattern or, with
// whole, is matched by it.
func newProgram(p *pattern, a *alphabet, whole bool, spend func(int) bool) (*program, error) {
	g := &program{spend: spend, ids: map[string]int32{}, accepting: map[int32]bool{}, classes: len(a.classes), anyEnd: !whole}
	c := &compiler{program: g, alphabet: a, known: map[int]int{}}
	if !whole {
		p = concat(repeated(setOf(anyRune...), 0, -1), p)
	}
	c.compile(p, c.add(instruction{op: runMatch}))
	return g, c.err
}

// newLook compiles the pattern of a look, which begins or, with behind, ends at a
// place of the text.
func newLook(p *pattern, a *alphabet, behind bool, spend func(int) bool) (*program, error) {
	if !behind {
		g, err := newProgram(p, a, true, spend)
		g.anyEnd = true
		return g, err
	}
	if p.has(patternLook, patternEnd) {
		return nil, fmt.Errorf("look-arounds in a look-behind are not supported; write them outside of it")
	}
	return newProgram(concat(repeated(setOf(anyRune...), 0, -1), p), a, true, spend)
}

// A compiler writes the instructions of a program from the last to the first, so the
// program begins at the last instruction.
type compiler struct {
	*program
	alphabet *alphabet
	known    map[int]int // sets by their number in the alphabet
	depth    int
	err      error
}

func (c *compiler) add(i instruction) int32 {
	if len(c.code) >= maxCode || !c.spend(1) {
		if c.err == nil {
			c.err = fmt.Errorf("%w: the pattern has more than %d steps; use shorter repetitions", ErrTooLarge, len(c.code))
		}
		return 0
	}
	c.code = append(c.code, i)
	return int32(len(c.code) - 1)
}

// compile writes the instructions of p, which continue at to, and returns their entry.
func (c *compiler) compile(p *pattern, to int32) int32 {
	if c.depth++; c.depth > 2*maxDepth && c.err == nil {
		c.err = fmt.Errorf("%w: groups are nested deeper than %d", ErrTooLarge, maxDepth)
	}
	defer func() { c.depth-- }()
	if c.err == nil && !c.spend(1) { // repetitions of nothing add no instruction
		c.err = fmt.Errorf("%w: the pattern repeats too much; use shorter repetitions", ErrTooLarge)
	}
	if c.err != nil {
		return to
	}
	switch p.op {
	case patternSet:
		return c.add(instruction{op: runSet, index: c.set(p.ranges), to: []int32{to}})
	case patternConcat:
		for _, kid := range slices.Backward(p.kids) {
			to = c.compile(kid, to)
		}
	case patternAlternate:
		var entries []int32
		for _, kid := range p.kids {
			entries = append(entries, c.compile(kid, to))
		}
		return c.add(instruction{op: runSplit, to: entries})
	case patternRepeat:
		return c.repeat(p, to)
	case patternLook:
		return c.look(p, to)
	case patternBegin:
		return c.add(instruction{op: runBegin, to: []int32{to}})
	case patternEnd:
		return c.look(look(setOf(anyRune...), true, false), to)
	}
	return to
}

func (c *compiler) set(ranges []runeRange) int {
	of := c.alphabet.number(ranges)
	n, ok := c.known[of]
	if !ok {
		n = len(c.sets)
		c.known[of] = n
		c.sets = append(c.sets, c.alphabet.contains(of))
	}
	return n
}

func (c *compiler) repeat(p *pattern, to int32) int32 {
	if p.hi < 0 {
		loop := c.add(instruction{op: runSplit})
		entry := c.compile(p.kids[0], loop)
		if c.err != nil {
			return to
		}
		c.code[loop].to = []int32{entry, to}
		to = c.add(instruction{op: runSplit, to: []int32{loop}})
	}
	end := to
	for i := p.lo; i < p.hi && c.err == nil; i++ {
		entry := c.compile(p.kids[0], to)
		to = c.add(instruction{op: runSplit, to: []int32{entry, end}})
	}
	for i := 0; i < p.lo && c.err == nil; i++ {
		to = c.compile(p.kids[0], to)
	}
	return to
}

func (c *compiler) look(p *pattern, to int32) int32 {
	inner, err := newLook(p.kids[0], c.alphabet, p.behind, c.spend)
	if err != nil {
		if c.err == nil {
			c.err = err
		}
		return to
	}
	list := &c.looks
	if p.behind {
		list = &c.behind
	}
	*list = append(*list, inner)
	return c.add(instruction{op: runLook, index: len(*list) - 1, not: p.not, behind: p.behind, to: []int32{to}})
}
