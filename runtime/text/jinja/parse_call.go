package jinja

// filters parses the filters, tests and calls after an expression.
func (p *parser) filters(x expr) expr {
	for {
		p.link()
		switch {
		case p.skipOp("|"):
			x = p.oneFilter(x)
		case p.isName("is"):
			x = p.test(x)
		case p.isOp("("):
			x = &callExpr{x, p.args()}
		default:
			return x
		}
	}
}

// filter parses a filter's name and arguments, and further chained filters.
func (p *parser) filter(of expr) *filterExpr {
	f := p.oneFilter(of)
	for p.skipOp("|") {
		f = p.oneFilter(f)
	}
	return f
}

func (p *parser) oneFilter(of expr) *filterExpr {
	f := &filterExpr{of: of, name: p.dotted()}
	if p.isOp("(") {
		f.args = p.args()
	}
	return f
}

func (p *parser) dotted() string {
	name := p.name("a name")
	for p.skipOp(".") {
		name += "." + p.name("a name")
	}
	return name
}

// test parses a test after "is".
func (p *parser) test(of expr) expr {
	p.next()
	negative := p.skipName("not")
	t := &testExpr{of: of, name: p.dotted()}
	next := p.token()
	switch {
	case p.isOp("("):
		t.args = p.args()
	case p.isName("else"), p.isName("or"), p.isName("and"):
	case p.isName("is"):
		p.fail("You cannot chain multiple tests with is")
	case next.kind == tokenName || next.kind == tokenString || next.kind == tokenInt || next.kind == tokenFloat || p.isOp("[") || p.isOp("{"):
		t.args.pos = []expr{p.postfix(p.primary())}
	}
	if negative {
		return &notExpr{t}
	}
	return t
}

// args parses the arguments of a call.
func (p *parser) args() (a argExprs) {
	p.enter()
	defer p.leave()
	p.expectOp("(")
	for first := true; !p.isOp(")"); first = false {
		if !first {
			p.expectOp(",")
			if p.isOp(")") {
				break
			}
		}
		ok := true
		switch {
		case p.skipOp("*"):
			ok = a.rest == nil && a.restDict == nil
			a.rest = p.expression(true)
		case p.skipOp("**"):
			ok = a.restDict == nil
			a.restDict = p.expression(true)
		case p.token().kind == tokenName && p.look().kind == tokenOp && p.look().text == "=":
			ok = a.restDict == nil
			a.names = append(a.names, p.next().text)
			p.next()
			a.named = append(a.named, p.expression(true))
		default:
			ok = a.rest == nil && a.restDict == nil && len(a.names) == 0
			a.pos = append(a.pos, p.expression(true))
		}
		if !ok {
			p.fail("invalid syntax for function call expression")
		}
	}
	p.expectOp(")")
	return a
}
