package jinja

import "slices"

// token returns the next token.
func (p *parser) token() token { return p.tokens[p.pos] }

// look returns the token after the next one.
func (p *parser) look() token { return p.tokens[min(p.pos+1, len(p.tokens)-1)] }

// peek describes the next token.
func (p *parser) peek() string {
	t := p.token()
	if t.kind == tokenEnd {
		return "the end of the tag"
	}
	return "'" + t.text + "'"
}

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEnd {
		p.pos++
		p.line = t.line
	}
	return t
}

func (p *parser) isOp(op string) bool {
	t := p.token()
	return t.kind == tokenOp && t.text == op
}

func (p *parser) skipOp(op string) bool {
	if p.isOp(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expectOp(op string) {
	if !p.skipOp(op) {
		p.fail("expected '%s', found %s", op, p.peek())
	}
}

func (p *parser) isName(name string) bool {
	t := p.token()
	return t.kind == tokenName && t.text == name
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expectName(name string) {
	if !p.skipName(name) {
		p.fail("expected '%s', found %s", name, p.peek())
	}
}

// name parses a name.
func (p *parser) name(what string) string {
	if p.token().kind != tokenName {
		p.fail("expected %s, found %s", what, p.peek())
	}
	return p.next().text
}

// isEnd reports whether an expression ends here: at the end of the tag, or before one
// of the given names.
func (p *parser) isEnd(names ...string) bool {
	t := p.token()
	return t.kind == tokenEnd || t.kind == tokenOp && t.text == ")" || t.kind == tokenName && slices.Contains(names, t.text)
}

// end expects the end of the tag.
func (p *parser) end() {
	if p.token().kind != tokenEnd {
		p.fail("unexpected %s; expected the end of the tag", p.peek())
	}
}
