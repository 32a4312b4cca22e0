package tensor

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseIndex parses an index: integers and letters of variables with + - * / % and
// parentheses. An index without variables is evaluated to a constant.
func ParseIndex(text string) (Index, error) {
	p := &indexParser{rest: text, left: maxIndexOps}
	x := p.sum()
	p.space()
	switch {
	case p.err != nil:
	case p.rest != "":
		p.expected("an operator")
	case x.Constant():
		n := 0
		if n, p.err = x.At(nil); p.err == nil && n < 0 {
			p.err = fmt.Errorf("%s is negative", x)
		}
		x = ConstIndex(n)
	}
	if p.err != nil {
		return Index{}, fmt.Errorf("index %s: %w", strings.TrimSpace(text), p.err)
	}
	return x, nil
}

// An indexParser parses an index from left to right. After an error it reads no more
// input.
type indexParser struct {
	rest string
	left int // remaining number of allowed operations and parentheses
	err  error
}

func (p *indexParser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

func (p *indexParser) expected(what string) {
	if p.err == nil && p.rest == "" {
		p.err = fmt.Errorf("expected %s at its end", what)
	} else if p.err == nil {
		p.err = fmt.Errorf("expected %s before %.10q", what, p.rest)
	}
	p.rest = ""
}

// take consumes and returns one of the characters, or returns 0.
func (p *indexParser) take(chars string) byte {
	p.space()
	if p.rest == "" || strings.IndexByte(chars, p.rest[0]) < 0 {
		return 0
	}
	if p.left--; p.left < 0 {
		p.err, p.rest = fmt.Errorf("more than %d operations", maxIndexOps), ""
		return 0
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c
}

func (p *indexParser) sum() Index { return p.operations("+-", p.product) }

func (p *indexParser) product() Index { return p.operations("*/%", p.operand) }

func (p *indexParser) operations(ops string, operand func() Index) Index {
	x := operand()
	for op := p.take(ops); op != 0; op = p.take(ops) {
		left, right := x, operand()
		x = Index{Op: IndexOp(op), X: &left, Y: &right}
	}
	return x
}

func (p *indexParser) operand() Index {
	if p.take("(") != 0 {
		x := p.sum()
		if p.take(")") == 0 {
			p.expected("a closing bracket")
		}
		return x
	}
	n := 0
	for n < len(p.rest) && (p.rest[n] >= '0' && p.rest[n] <= '9' || p.rest[n] >= 'a' && p.rest[n] <= 'z' || p.rest[n] >= 'A' && p.rest[n] <= 'Z' || p.rest[n] == '_') {
		n++
	}
	word := p.rest[:n]
	if n == 1 && word[0] >= 'i' && word[0] <= 'z' {
		p.rest = p.rest[n:]
		return VarIndex(int(word[0] - 'i'))
	}
	if n > 0 && word[0] <= '9' {
		number, err := strconv.Atoi(word)
		if err != nil || number > maxIndexValue {
			p.err, p.rest = fmt.Errorf("%s is not an integer up to %d", word, maxIndexValue), ""
			return Index{}
		}
		p.rest = p.rest[n:]
		return ConstIndex(number)
	}
	p.expected("a number or i, j, …")
	return Index{}
}
