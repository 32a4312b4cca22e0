package regexp

import (
	"fmt"
	"strconv"
	"strings"
)

// class parses a character class after '[': ranges, escapes, [:posix:], nested classes
// and && intersections.
func (p *regexParser) class() (Set, error) {
	if p.depth++; p.depth > maxRegexDepth {
		return nil, fmt.Errorf("classes nest deeper than %d", maxRegexDepth)
	}
	defer func() { p.depth-- }()
	negated := p.take("^")
	var pairs []rune
	var left Set
	haveLeft := false
	for first := true; ; first = false {
		if !p.more() {
			return nil, fmt.Errorf("class is not closed")
		}
		if p.peek() == ']' && !first {
			p.pos++
			break
		}
		if p.take("&&") {
			right := normalizeSet(pairs)
			if haveLeft {
				right = left.Intersect(right)
			}
			left, haveLeft, pairs = right, true, nil
			continue
		}
		set, err := p.classItem()
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, set...)
	}
	set := normalizeSet(pairs)
	if haveLeft {
		set = left.Intersect(set)
	}
	if p.icase {
		set = set.fold()
	}
	if negated {
		set = set.Negate()
	}
	return set, nil
}

// classItem parses one item of a class: a nested class, an escape or a range.
func (p *regexParser) classItem() (Set, error) {
	if p.peek() == '[' {
		if strings.HasPrefix(p.src[p.pos:], "[:") {
			if set, ok := p.posixBracket(); ok {
				return set, nil
			}
		}
		p.pos++
		return p.class()
	}
	set, err := p.classAtom()
	if err != nil || len(set) != 2 || set[0] != set[1] {
		return set, err
	}
	if p.peek() != '-' || p.pos+1 >= len(p.src) || p.src[p.pos+1] == ']' {
		return set, nil
	}
	mark := p.pos
	p.pos++
	if p.peek() == '[' {
		p.pos = mark
		return set, nil
	}
	end, err := p.classAtom()
	if err != nil {
		return nil, err
	}
	if len(end) != 2 || end[0] != end[1] {
		return set.Union(Set{'-', '-'}).Union(end), nil
	}
	if end[0] < set[0] {
		return nil, fmt.Errorf("range %q-%q is empty", set[0], end[0])
	}
	return Set{set[0], end[0]}, nil
}

func (p *regexParser) classAtom() (Set, error) {
	if p.take(`\`) {
		if p.take("b") {
			return Set{'\b', '\b'}, nil
		}
		return p.escapedSet()
	}
	r := p.rune()
	return Set{r, r}, nil
}

func (p *regexParser) posixBracket() (Set, bool) {
	name, _, closed := strings.Cut(p.src[p.pos+len("[:"):], ":]")
	if !closed {
		return nil, false
	}
	set, ok := posixSets[strings.TrimPrefix(name, "^")]
	if !ok {
		return nil, false
	}
	p.pos += len("[:") + len(name) + len(":]")
	if strings.HasPrefix(name, "^") {
		return set().Negate(), true
	}
	return set(), true
}

// escapedSet parses an escape that stands for a set of characters, after the backslash.
func (p *regexParser) escapedSet() (Set, error) {
	if !p.more() {
		return nil, fmt.Errorf("pattern ends in a backslash")
	}
	r := p.rune()
	switch r {
	case 's':
		return Space(), nil
	case 'S':
		return Space().Negate(), nil
	case 'd':
		return digitSet(), nil
	case 'D':
		return digitSet().Negate(), nil
	case 'w':
		return wordSet(), nil
	case 'W':
		return wordSet().Negate(), nil
	case 'h':
		return hexSet(), nil
	case 'H':
		return hexSet().Negate(), nil
	case 'p', 'P':
		return p.property(r == 'P')
	case 'x':
		return p.hexEscape()
	case 'u':
		return p.fixedHex(4)
	case '0':
		return Set{0, 0}, nil
	}
	if c, ok := controlEscapes[r]; ok {
		r = c
	}
	return Set{r, r}, nil
}

var controlEscapes = map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b}

func (p *regexParser) property(negated bool) (Set, error) {
	name := ""
	if p.take("{") {
		end := strings.IndexByte(p.src[p.pos:], '}')
		if end < 0 {
			return nil, fmt.Errorf("property is not closed")
		}
		name = p.src[p.pos : p.pos+end]
		p.pos += end + 1
	} else if p.more() {
		name = string(p.rune())
	}
	set, err := propertySet(name)
	if err == nil && negated {
		set = set.Negate()
	}
	return set, err
}

func (p *regexParser) hexEscape() (Set, error) {
	if !p.take("{") {
		return p.fixedHex(2)
	}
	end := strings.IndexByte(p.src[p.pos:], '}')
	if end < 0 {
		return nil, fmt.Errorf(`\x{ is not closed`)
	}
	digits := p.src[p.pos : p.pos+end]
	p.pos += end + 1
	return hexRune(digits)
}

func (p *regexParser) fixedHex(most int) (Set, error) {
	start := p.pos
	for p.more() && p.pos-start < most && strings.IndexByte("0123456789abcdefABCDEF", p.peek()) >= 0 {
		p.pos++
	}
	return hexRune(p.src[start:p.pos])
}

func hexRune(digits string) (Set, error) {
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || v > 0x10ffff {
		return nil, fmt.Errorf("%q is not a hexadecimal code point", digits)
	}
	return Set{rune(v), rune(v)}, nil
}
