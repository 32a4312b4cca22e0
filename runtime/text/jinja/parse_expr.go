package jinja

import "strings"

// expression parses one expression; conditional allows "a if b else c".
func (p *parser) expression(conditional bool) expr {
	p.enter()
	defer p.leave()
	x := p.or()
	for conditional && p.skipName("if") {
		p.link()
		c := &condExpr{test: p.or(), yes: x}
		if p.skipName("else") {
			c.no = p.expression(true)
		}
		x = c
	}
	return x
}

// tuple parses expressions separated by commas; a single one is not a tuple.
func (p *parser) tuple(conditional bool) expr { return p.tupleUntil(conditional) }

func (p *parser) tupleUntil(conditional bool, ends ...string) expr {
	var list []expr
	tuple := false
	for {
		if p.isEnd(ends...) {
			break
		}
		list = append(list, p.expression(conditional))
		if !p.skipOp(",") {
			break
		}
		tuple = true
	}
	if tuple {
		return &listExpr{items: list, tuple: true}
	}
	if len(list) == 0 {
		p.fail("expected an expression, found %s", p.peek())
	}
	return list[0]
}

func (p *parser) or() expr {
	x := p.and()
	for p.skipName("or") {
		p.link()
		x = &logicExpr{x: x, y: p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.skipName("and") {
		p.link()
		x = &logicExpr{x: x, y: p.not(), and: true}
	}
	return x
}

func (p *parser) not() expr {
	if p.skipName("not") {
		p.enter()
		defer p.leave()
		return &notExpr{p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	c := &compareExpr{first: p.sum()}
	for {
		t := p.token()
		op := ""
		switch {
		case t.kind == tokenOp && strings.Contains(" == != < <= > >= ", " "+t.text+" "):
			op = t.text
		case p.isName("in"):
			op = "in"
		case p.isName("not") && p.look().kind == tokenName && p.look().text == "in":
			p.next()
			op = "not in"
		}
		if op == "" {
			break
		}
		p.next()
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.sum())
	}
	if len(c.ops) == 0 {
		return c.first
	}
	return c
}

func (p *parser) sum() expr {
	x := p.concat()
	for p.isOp("+") || p.isOp("-") {
		p.link()
		op := p.next().text
		x = &binaryExpr{op, x, p.concat()}
	}
	return x
}

func (p *parser) concat() expr {
	list := []expr{p.product()}
	for p.skipOp("~") {
		list = append(list, p.product())
	}
	if len(list) == 1 {
		return list[0]
	}
	return &concatExpr{list}
}

func (p *parser) product() expr {
	x := p.power()
	for p.isOp("*") || p.isOp("/") || p.isOp("//") || p.isOp("%") {
		p.link()
		op := p.next().text
		x = &binaryExpr{op, x, p.power()}
	}
	return x
}

func (p *parser) power() expr {
	x := p.unary(true)
	for p.skipOp("**") {
		p.link()
		x = &binaryExpr{"**", x, p.unary(true)}
	}
	return x
}

func (p *parser) unary(filters bool) expr {
	p.enter()
	defer p.leave()
	var x expr
	switch {
	case p.skipOp("-"):
		x = &signExpr{p.unary(false), true}
	case p.skipOp("+"):
		x = &signExpr{p.unary(false), false}
	default:
		x = p.primary()
	}
	x = p.postfix(x)
	if filters {
		x = p.filters(x)
	}
	return x
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokenName:
		return p.nameOrConst(t.text)
	case tokenString:
		text := t.text
		for p.token().kind == tokenString {
			text += p.next().text
		}
		return &constExpr{Text(text)}
	case tokenInt, tokenFloat:
		return &constExpr{t.value}
	case tokenOp:
		switch t.text {
		case "(":
			return p.parenthesis()
		case "[":
			return &listExpr{items: p.list("]")}
		case "{":
			return p.dict()
		}
		p.fail("unexpected '%s'", t.text)
	}
	p.fail("expected an expression, found %s", p.peek())
	return nil
}

func (p *parser) nameOrConst(name string) expr {
	switch name {
	case "true", "True":
		return &constExpr{true}
	case "false", "False":
		return &constExpr{false}
	case "none", "None":
		return &constExpr{nil}
	}
	if len(p.uses) > 0 {
		p.uses[len(p.uses)-1][name] = true
	}
	return &nameExpr{name}
}

// parenthesis parses an expression or a tuple after "(".
func (p *parser) parenthesis() expr {
	if p.skipOp(")") {
		return &listExpr{tuple: true}
	}
	x := p.tuple(true)
	p.expectOp(")")
	return x
}

// list parses expressions up to a closing bracket; a trailing comma is allowed.
func (p *parser) list(end string) (items []expr) {
	for !p.isOp(end) {
		if len(items) > 0 {
			p.expectOp(",")
			if p.isOp(end) {
				break
			}
		}
		items = append(items, p.expression(true))
	}
	p.expectOp(end)
	return items
}

func (p *parser) dict() expr {
	d := &dictExpr{}
	for !p.isOp("}") {
		if len(d.keys) > 0 {
			p.expectOp(",")
			if p.isOp("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression(true))
		p.expectOp(":")
		d.values = append(d.values, p.expression(true))
	}
	p.expectOp("}")
	return d
}

// postfix parses attributes, subscripts and calls.
func (p *parser) postfix(x expr) expr {
	for {
		p.link()
		switch {
		case p.skipOp("."):
			t := p.next()
			switch t.kind {
			case tokenName:
				x = &attrExpr{x, t.text}
			case tokenInt:
				x = &itemExpr{x, &constExpr{t.value}}
			default:
				p.fail("expected name or number, found %s", p.peek())
			}
		case p.skipOp("["):
			x = p.subscript(x)
		case p.isOp("("):
			x = &callExpr{x, p.args()}
		default:
			return x
		}
	}
}

// subscript parses a subscript after "[": a key, a slice, or several of them, which
// form a tuple.
func (p *parser) subscript(of expr) expr {
	var keys []expr
	for !p.isOp("]") {
		if len(keys) > 0 {
			p.expectOp(",")
		}
		keys = append(keys, p.key(of))
	}
	p.expectOp("]")
	if len(keys) != 1 {
		return &itemExpr{of, &listExpr{items: keys, tuple: true}}
	}
	if s, ok := keys[0].(*sliceExpr); ok {
		return s
	}
	return &itemExpr{of, keys[0]}
}

// key parses an index, or a slice from:to:step.
func (p *parser) key(of expr) expr {
	s := &sliceExpr{of: of}
	part := func() expr {
		if p.isOp(":") || p.isOp("]") || p.isOp(",") {
			return nil
		}
		return p.expression(true)
	}
	if !p.isOp(":") {
		if s.from = p.expression(true); !p.isOp(":") {
			return s.from
		}
	}
	p.expectOp(":")
	s.to = part()
	if p.skipOp(":") {
		s.step = part()
	}
	return s
}
