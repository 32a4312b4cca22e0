package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseGBNF parses a grammar in llama.cpp's GBNF notation: rules "name ::= …" of
// "literals", [character classes], ., (groups), | and the repetitions * + ? {m} {m,}
// {m,n}; # starts a comment. The start rule is root.
func ParseGBNF(source string) (*Grammar, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, len(source), maxSource)
	}
	if !utf8.ValidString(source) {
		return nil, fmt.Errorf("the grammar is not valid UTF-8")
	}
	p := &gbnfParser{src: source, b: &builder{}, rules: map[string]int32{}}
	p.space(true)
	for p.err == nil && p.at < len(p.src) {
		p.rule()
	}
	if p.err != nil {
		return nil, p.err
	}
	root, ok := p.rules["root"]
	if !ok {
		return nil, fmt.Errorf("the grammar has no rule named root")
	}
	return p.b.finish(root)
}

type gbnfParser struct {
	src   string
	at    int
	depth int
	b     *builder
	rules map[string]int32
	err   error
}

// fail records an error at the current position and stops the parser. The builder's own
// error has stopped it before, if there is one.
func (p *gbnfParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = p.b.err
	}
	if p.err == nil {
		line := 1 + strings.Count(p.src[:p.at], "\n")
		col := p.at - strings.LastIndexByte(p.src[:p.at], '\n')
		p.err = fmt.Errorf("grammar:%d:%d: %s", line, col, fmt.Sprintf(format, args...))
	}
	p.at = len(p.src)
}

func (p *gbnfParser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

// take skips text if it comes next, and reports whether it did.
func (p *gbnfParser) take(text string) bool {
	if strings.HasPrefix(p.src[p.at:], text) {
		p.at += len(text)
		return true
	}
	return false
}

// space skips spaces and comments, and line ends if they do not end a rule.
func (p *gbnfParser) space(lines bool) {
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			p.at++
		case c == '#':
			for p.at < len(p.src) && p.src[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func isNameByte(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (p *gbnfParser) name() string {
	from := p.at
	for isNameByte(p.peek()) {
		p.at++
	}
	if from == p.at {
		p.fail("expected the name of a rule, found %.10q", p.src[p.at:])
	}
	return p.src[from:p.at]
}

// ref returns the rule of a name, which may be defined later.
func (p *gbnfParser) ref(name string) int32 {
	r, ok := p.rules[name]
	if !ok {
		r = p.b.rule(name)
		p.rules[name] = r
	}
	return r
}

func (p *gbnfParser) rule() {
	name := p.name()
	p.space(false)
	if p.err == nil && !p.take("::=") {
		p.fail("expected ::= after %s", name)
	}
	p.space(true)
	body := p.alternatives(false)
	if p.err != nil {
		return
	}
	r := p.ref(name)
	if p.b.rules[r].defined {
		p.fail("rule %s is defined twice", name)
		return
	}
	p.b.define(r, body)
	if c := p.peek(); p.at < len(p.src) && c != '\n' && c != '\r' {
		p.fail("expected the end of rule %s, found %.10q", name, p.src[p.at:])
	}
	p.space(true)
}

func (p *gbnfParser) alternatives(nested bool) part {
	if p.depth++; p.depth > maxDepth {
		p.fail("groups are nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	parts := []part{p.sequence(nested)}
	for p.err == nil && p.take("|") {
		p.space(true)
		parts = append(parts, p.sequence(nested))
	}
	return p.b.alt(parts...)
}

// sequence parses elements with their repetitions.
func (p *gbnfParser) sequence(nested bool) part {
	all := p.b.empty()
	for p.err == nil && p.b.err == nil && p.starts() {
		from := len(p.b.states)
		one := p.element()
		if lo, hi := p.repetition(); lo != 1 || hi != 1 {
			one = p.b.repeatPart(one, from, lo, hi)
		}
		all = p.b.seq(all, one)
		p.space(nested)
	}
	return all
}

// starts reports whether an element comes next.
func (p *gbnfParser) starts() bool {
	c := p.peek()
	return c == '"' || c == '[' || c == '(' || c == '.' || isNameByte(c)
}

func (p *gbnfParser) element() part {
	switch {
	case p.take(`"`):
		return p.literal()
	case p.take("["):
		return p.class()
	case p.take("."):
		return p.b.runes(anyRune)
	case p.take("("):
		p.space(true)
		group := p.alternatives(true)
		if p.err == nil && !p.take(")") {
			p.fail("expected ) at the end of the group, found %.10q", p.src[p.at:])
		}
		return group
	}
	return p.b.call(p.ref(p.name()))
}

// repetition parses * + ? or {m,n}; hi is -1 if there is no maximum.
func (p *gbnfParser) repetition() (lo, hi int) {
	const most = 1 << 16
	from := p.at
	p.space(false)
	switch {
	case p.take("*"):
		return 0, -1
	case p.take("+"):
		return 1, -1
	case p.take("?"):
		return 0, 1
	case !p.take("{"):
		p.at = from
		return 1, 1
	}
	inside, _, ok := strings.Cut(p.src[p.at:], "}")
	first, last, open := strings.Cut(inside, ",")
	lo, err := strconv.Atoi(strings.TrimSpace(first))
	switch last = strings.TrimSpace(last); {
	case open && last == "":
		hi = -1
	case open && err == nil:
		hi, err = strconv.Atoi(last)
	default:
		hi = lo
	}
	if !ok || err != nil || lo < 0 || lo > most || hi > most || hi >= 0 && hi < lo {
		p.fail("expected {m}, {m,} or {m,n} with numbers of at most %d, found %.20q", most, "{"+inside)
		return 1, 1
	}
	p.at += len(inside) + 1
	return lo, hi
}

func (p *gbnfParser) literal() part {
	text := p.b.empty()
	for p.err == nil && !p.take(`"`) {
		if p.at == len(p.src) || p.peek() == '\n' {
			p.fail("the literal has no closing quote")
			break
		}
		r := p.char()
		text = p.b.seq(text, p.b.runes([]runeRange{{r, r}}))
	}
	return text
}

func (p *gbnfParser) class() part {
	negated := p.take("^")
	var ranges []runeRange
	for p.err == nil && !p.take("]") {
		if p.at == len(p.src) {
			p.fail("the character class has no ]")
			break
		}
		r := runeRange{lo: p.char()}
		r.hi = r.lo
		if p.peek() == '-' && !strings.HasPrefix(p.src[p.at:], "-]") {
			p.at++
			r.hi = p.char()
		}
		if r.hi < r.lo {
			p.fail("the range %c-%c is reversed", r.lo, r.hi)
		}
		ranges = append(ranges, r)
	}
	if negated {
		ranges = without(ranges...)
	}
	return p.b.runes(ranges)
}

// char parses a character or an escape.
func (p *gbnfParser) char() rune {
	r, size := utf8.DecodeRuneInString(p.src[p.at:])
	p.at += size
	if r != '\\' {
		return r
	}
	c := p.peek()
	p.at = min(p.at+1, len(p.src))
	digits := 0
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case '\\', '"', '[', ']', '-', '^':
		return rune(c)
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	hex := p.src[p.at:min(p.at+digits, len(p.src))]
	v, err := strconv.ParseUint(hex, 16, 32)
	if digits == 0 || err != nil || len(hex) != digits || v > maxRune {
		p.fail("unknown escape \\%c; use one of: \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH", c)
		return 0
	}
	p.at += digits
	return rune(v)
}
