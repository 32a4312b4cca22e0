package regexp

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// astKind is a kind of node in the syntax tree of a pattern, one per construct.
type astKind uint8

const (
	astEmpty astKind = iota
	astSet
	astSeq
	astAlt
	astRepeat
	astLook
	astAtomic
	astAnchor
)

type ast struct {
	kind     astKind
	set      Set
	kids     []*ast
	min, max int  // astRepeat; max < 0 is unbounded
	mode     byte // astRepeat: 'g' greedy, 'l' lazy, 'p' possessive; astAnchor: which one
	behind   bool // astLook
	negated  bool // astLook
}

// regexParser parses the Oniguruma (Ruby) syntax of tokenizer.json: nested classes and
// intersections, properties, lookaround, atomic groups, possessive quantifiers and
// inline options.
type regexParser struct {
	src   string
	pos   int
	depth int
	icase bool
	dot   bool // '.' matches '\n' too
	ext   bool // ignore white space in the pattern
}

const (
	maxRegexDepth  = 100
	maxRegexLength = 64 << 10
)

func parse(src string) (*ast, error) {
	if len(src) > maxRegexLength {
		return nil, fmt.Errorf("regex has %d bytes; at most %d are allowed", len(src), maxRegexLength)
	}
	p := &regexParser{src: src}
	n, err := p.alternation()
	if err != nil {
		return nil, fmt.Errorf("regex %.80q: offset %d: %w", src, p.pos, err)
	}
	if p.pos < len(src) {
		return nil, fmt.Errorf("regex %.80q: offset %d: unmatched ')'", src, p.pos)
	}
	return n, nil
}

func (p *regexParser) more() bool { return p.pos < len(p.src) }

func (p *regexParser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *regexParser) take(s string) bool {
	if len(p.src)-p.pos >= len(s) && p.src[p.pos:p.pos+len(s)] == s {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *regexParser) rune() rune {
	r, n := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += n
	return r
}

func (p *regexParser) alternation() (*ast, error) {
	if p.depth++; p.depth > maxRegexDepth {
		return nil, fmt.Errorf("groups nest deeper than %d", maxRegexDepth)
	}
	defer func() { p.depth-- }()
	icase, dot, ext := p.icase, p.dot, p.ext
	defer func() { p.icase, p.dot, p.ext = icase, dot, ext }()
	var alts []*ast
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alts = append(alts, n)
		if !p.take("|") {
			break
		}
	}
	if len(alts) == 1 {
		return alts[0], nil
	}
	return &ast{kind: astAlt, kids: alts}, nil
}

func (p *regexParser) sequence() (*ast, error) {
	seq := &ast{kind: astSeq}
	for p.more() && p.peek() != '|' && p.peek() != ')' {
		if p.ext && p.skipFreeSpacing() {
			continue
		}
		n, err := p.atom()
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if n, err = p.quantifiers(n); err != nil {
			return nil, err
		}
		seq.kids = append(seq.kids, n)
	}
	return seq, nil
}

func (p *regexParser) skipFreeSpacing() bool {
	switch p.peek() {
	case ' ', '\t', '\n', '\r':
		p.pos++
		return true
	case '#':
		for p.more() && p.peek() != '\n' {
			p.pos++
		}
		return true
	}
	return false
}

func (p *regexParser) atom() (*ast, error) {
	switch c := p.peek(); c {
	case '(':
		p.pos++
		return p.group()
	case '[':
		p.pos++
		set, err := p.class()
		return p.setNode(set), err
	case '.':
		p.pos++
		if p.dot {
			return &ast{kind: astSet, set: Set{0, unicode.MaxRune}}, nil
		}
		return &ast{kind: astSet, set: Set{'\n', '\n'}.Negate()}, nil
	case '^', '$':
		p.pos++
		return &ast{kind: astAnchor, mode: c}, nil
	case '*', '+', '?':
		return nil, fmt.Errorf("quantifier %q has nothing to repeat", c)
	case '\\':
		p.pos++
		return p.escape()
	}
	r := p.rune()
	return p.setNode(Set{r, r}), nil
}

func (p *regexParser) setNode(set Set) *ast {
	if p.icase {
		set = set.fold()
	}
	return &ast{kind: astSet, set: set}
}

func (p *regexParser) escape() (*ast, error) {
	switch c := p.peek(); c {
	case 'A', 'z', 'Z', 'b', 'B', 'G':
		p.pos++
		return &ast{kind: astAnchor, mode: c}, nil
	case 'R':
		p.pos++
		crlf := &ast{kind: astSeq, kids: []*ast{{kind: astSet, set: Set{'\r', '\r'}}, {kind: astSet, set: Set{'\n', '\n'}}}}
		one := &ast{kind: astSet, set: Set{'\n', '\r', 0x85, 0x85, 0x2028, 0x2029}}
		return &ast{kind: astAtomic, kids: []*ast{{kind: astAlt, kids: []*ast{crlf, one}}}}, nil
	case 'X', 'K', 'k', 'g', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return nil, fmt.Errorf(`\%c is not supported`, c)
	}
	set, err := p.escapedSet()
	if err != nil {
		return nil, err
	}
	return p.setNode(set), nil
}

// group parses a group after '('.
func (p *regexParser) group() (*ast, error) {
	wrap := func(n *ast) *ast { return n }
	switch {
	case p.take("?:"):
	case p.take("?="):
		wrap = func(n *ast) *ast { return &ast{kind: astLook, kids: []*ast{n}} }
	case p.take("?!"):
		wrap = func(n *ast) *ast { return &ast{kind: astLook, negated: true, kids: []*ast{n}} }
	case p.take("?<="):
		wrap = func(n *ast) *ast { return &ast{kind: astLook, behind: true, kids: []*ast{n}} }
	case p.take("?<!"):
		wrap = func(n *ast) *ast { return &ast{kind: astLook, behind: true, negated: true, kids: []*ast{n}} }
	case p.take("?>"):
		wrap = func(n *ast) *ast { return &ast{kind: astAtomic, kids: []*ast{n}} }
	case p.take("?#"):
		for p.more() && p.peek() != ')' {
			p.pos++
		}
		if !p.take(")") {
			return nil, fmt.Errorf("comment is not closed")
		}
		return nil, nil
	case p.take("?<"), p.take("?'"):
		for p.more() && p.peek() != '>' && p.peek() != '\'' {
			p.pos++
		}
		p.pos++
	case p.take("?"):
		return p.options()
	}
	n, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, fmt.Errorf("group is not closed")
	}
	return wrap(n), nil
}

// options parses (?imx-imx) and (?imx-imx:…).
func (p *regexParser) options() (*ast, error) {
	on := true
	icase, dot, ext := p.icase, p.dot, p.ext
	for p.more() {
		c := p.peek()
		p.pos++
		switch c {
		case '-':
			on = false
		case 'i':
			p.icase = on
		case 'm', 's':
			p.dot = on
		case 'x':
			p.ext = on
		case ':', ')':
			n, err := p.alternation()
			if err != nil {
				return nil, err
			}
			p.icase, p.dot, p.ext = icase, dot, ext
			if c == ':' && !p.take(")") {
				return nil, fmt.Errorf("group is not closed")
			}
			return n, nil
		default:
			return nil, fmt.Errorf("unknown group option %q", c)
		}
	}
	return nil, fmt.Errorf("group is not closed")
}

func (p *regexParser) quantifiers(n *ast) (*ast, error) {
	for p.more() {
		lo, hi, braces := 0, -1, false
		switch {
		case p.take("*"):
		case p.take("+"):
			lo = 1
		case p.take("?"):
			hi = 1
		case p.peek() == '{':
			var ok bool
			if lo, hi, ok = p.braces(); !ok {
				return n, nil
			}
			braces = true
		default:
			return n, nil
		}
		if lo > maxRegexRepeat || hi > maxRegexRepeat || (hi >= 0 && hi < lo) {
			return nil, fmt.Errorf("repeat {%d,%d} is not valid (limit %d)", lo, hi, maxRegexRepeat)
		}
		mode := byte('g')
		if p.take("?") {
			mode = 'l'
		} else if !braces && p.take("+") {
			mode = 'p'
		}
		n = &ast{kind: astRepeat, kids: []*ast{n}, min: lo, max: hi, mode: mode}
	}
	return n, nil
}

const maxRegexRepeat = 1000

// braces parses {n}, {n,}, {,m} and {n,m}; anything else is a literal brace.
func (p *regexParser) braces() (lo, hi int, ok bool) {
	start := p.pos
	p.pos++
	lo, haveLo := p.number()
	hi = lo
	if p.take(",") {
		var haveHi bool
		if hi, haveHi = p.number(); !haveHi {
			hi = -1
			if !haveLo {
				p.pos = start
				return 0, 0, false
			}
		}
	} else if !haveLo {
		p.pos = start
		return 0, 0, false
	}
	if !p.take("}") {
		p.pos = start
		return 0, 0, false
	}
	return lo, hi, true
}

func (p *regexParser) number() (int, bool) {
	start := p.pos
	for p.more() && p.peek() >= '0' && p.peek() <= '9' {
		p.pos++
	}
	if p.pos == start {
		return 0, false
	}
	v, err := strconv.Atoi(p.src[start:p.pos])
	if err != nil {
		v = maxRegexRepeat + 1
	}
	return v, true
}
