package jinja

import "slices"

// A parser parses the sections of a template.
type parser struct {
	sections []section
	at       int     // next section
	tokens   []token // of the current tag or expression
	pos      int
	line     int
	depth    int // nesting of expressions and blocks
	loops    int // number of enclosing loops
	links    int // operators and similar in the section, which nest to the left
	uses     []map[string]bool
}

// maxDepth limits the nesting of blocks and expressions.
const maxDepth = 200

func (p *parser) enter() {
	p.depth++
	if p.depth > maxDepth {
		p.fail("nested deeper than %d", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

// maxLinks limits the operators of one expression.
const maxLinks = 20000

func (p *parser) link() {
	if p.links++; p.links > maxLinks {
		p.fail("the expression is too long")
	}
}

func (p *parser) fail(format string, args ...any) {
	l := lexer{line: p.line}
	l.fail(format, args...)
}

// parse parses statements up to one of the tags in ends, and stops after its name. If
// ends is empty, it parses up to the end of the template.
func (p *parser) parse(ends ...string) (body []stmt, end string) {
	p.enter()
	defer p.leave()
	for p.at < len(p.sections) {
		sec := p.sections[p.at]
		p.at++
		p.line = sec.line
		if sec.kind == sectionText {
			body = append(body, &textStmt{sec.text})
			continue
		}
		p.tokens, p.pos, p.links = sec.tokens, 0, 0
		if sec.kind == sectionPrint {
			body = append(body, &printStmt{p.tuple(true), sec.line})
			p.end()
			continue
		}
		name := p.name("a tag's name")
		if slices.Contains(ends, name) {
			return body, name
		}
		body = append(body, p.tag(name))
	}
	if len(ends) > 0 {
		p.fail("unexpected end of the template; expected {%% %s %%}", ends[len(ends)-1])
	}
	return body, ""
}

// tag parses the rest of a tag, and the block that it opens.
func (p *parser) tag(name string) stmt {
	line := p.line
	switch name {
	case "if":
		return p.ifTag()
	case "for":
		return p.forTag()
	case "set":
		return p.setTag()
	case "macro":
		return &macroStmt{p.macroTag(), line}
	case "call":
		return p.callTag()
	case "filter":
		f := p.filter(nil)
		p.end()
		body, _ := p.parse("endfilter")
		p.end()
		return &filterStmt{f, body, line}
	case "with":
		return p.withTag()
	case "generation":
		p.end()
		body, _ := p.parse("endgeneration")
		p.end()
		return &blockStmt{body}
	case "break", "continue":
		p.end()
		if p.loops == 0 {
			p.fail("{%% %s %%} stands outside of a loop", name)
		}
		if name == "break" {
			return &loopStmt{breakLoop}
		}
		return &loopStmt{continueLoop}
	}
	p.fail("Encountered unknown tag '%s'.", name)
	return nil
}

func (p *parser) ifTag() stmt {
	s := &ifStmt{line: p.line}
	s.test = p.tupleUntil(false)
	p.end()
	var end string
	s.yes, end = p.parse("elif", "else", "endif")
	switch end {
	case "elif":
		p.enter()
		s.no = []stmt{p.ifTag()}
		p.leave()
		return s
	case "else":
		p.end()
		s.no, _ = p.parse("endif")
	}
	p.end()
	return s
}

func (p *parser) forTag() stmt {
	s := &forStmt{line: p.line}
	s.target = p.targets("in")
	p.expectName("in")
	s.in = p.tupleUntil(false, "recursive")
	if p.skipName("if") {
		s.filter = p.expression(true)
	}
	s.recursive = p.skipName("recursive")
	p.end()
	p.loops++
	body, end := p.parse("else", "endfor")
	p.loops--
	s.body = body
	if end == "else" {
		p.end()
		s.otherwise, _ = p.parse("endfor")
	}
	p.end()
	return s
}

func (p *parser) setTag() stmt {
	line := p.line
	to := p.targets()
	if p.skipOp("=") {
		s := &setStmt{to, p.tuple(true), line}
		p.end()
		return s
	}
	var f *filterExpr
	for p.skipOp("|") {
		if f == nil {
			f = p.oneFilter(nil)
		} else {
			f = p.oneFilter(f)
		}
	}
	p.end()
	body, _ := p.parse("endset")
	p.end()
	return &setBlockStmt{to, f, body, line}
}

// targets parses the targets of an assignment or a loop.
func (p *parser) targets(ends ...string) target {
	var list []target
	tuple := false
	for {
		if p.isEnd(ends...) {
			break
		}
		list = append(list, p.target())
		if !p.skipOp(",") {
			break
		}
		tuple = true
	}
	if len(list) == 0 {
		p.fail("expected a name, found %s", p.peek())
	}
	if !tuple {
		return list[0]
	}
	return target{tuple: list}
}

func (p *parser) target() target {
	if p.skipOp("(") {
		p.enter()
		defer p.leave()
		t := p.targets()
		p.expectOp(")")
		return t
	}
	name := p.name("a name")
	if slices.Contains([]string{"true", "false", "none", "True", "False", "None"}, name) {
		p.fail("can't assign to %q", name)
	}
	if p.skipOp(".") {
		return target{name: name, attr: p.name("an attribute's name")}
	}
	return target{name: name}
}

// signature parses the parameters of a macro or a call block.
func (p *parser) signature(def *macroDef) {
	p.expectOp("(")
	for !p.isOp(")") {
		if len(def.params) > 0 {
			p.expectOp(",")
			if p.isOp(")") {
				break
			}
		}
		def.params = append(def.params, p.name("a parameter"))
		if p.skipOp("=") {
			def.defaults = append(def.defaults, p.expression(true))
		} else if len(def.defaults) > 0 {
			p.fail("non-default argument follows default argument")
		}
	}
	p.expectOp(")")
}

func (p *parser) macroTag() *macroDef {
	def := &macroDef{name: p.name("the macro's name")}
	p.signature(def)
	p.end()
	p.macroBody(def, "endmacro")
	return def
}

// macroBody parses the body of a macro and records which special variables it uses.
func (p *parser) macroBody(def *macroDef, end string) {
	loops := p.loops
	p.loops = 0
	p.uses = append(p.uses, map[string]bool{})
	def.body, _ = p.parse(end)
	uses := p.uses[len(p.uses)-1]
	p.uses = p.uses[:len(p.uses)-1]
	def.varargs, def.kwargs, def.caller = uses["varargs"], uses["kwargs"], uses["caller"]
	p.loops = loops
	p.end()
}

func (p *parser) callTag() stmt {
	s := &callStmt{caller: &macroDef{name: "caller"}, line: p.line}
	if p.isOp("(") {
		p.signature(s.caller)
	}
	call, ok := p.expression(true).(*callExpr)
	if !ok {
		p.fail("expected call")
	}
	s.call = call
	p.end()
	p.macroBody(s.caller, "endcall")
	return s
}

func (p *parser) withTag() stmt {
	s := &withStmt{line: p.line}
	for !p.isEnd() {
		if len(s.targets) > 0 {
			p.expectOp(",")
		}
		s.targets = append(s.targets, p.target())
		p.expectOp("=")
		s.values = append(s.values, p.expression(true))
	}
	p.end()
	s.body, _ = p.parse("endwith")
	p.end()
	return s
}
