package syntax

import (
	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// Targets are what a statement assigns to: values and variables.
type Targets struct {
	List []*Target
}

// A Target is one of them.
type Target struct {
	Pos  lexer.Position
	Name string
}

// Parse parses names with commas between them and an equals sign behind.
func (t *Targets) Parse(lex *lexer.PeekingLexer) error {
	from := lex.MakeCheckpoint()
	for {
		tok := lex.Next()
		if tok.Type != tokValue && tok.Type != tokIdent {
			break
		}
		t.List = append(t.List, &Target{tok.Pos, tok.Value})
		switch lex.Next().Value {
		case ",":
			continue
		case "=":
			return nil
		}
		break
	}
	t.List = nil
	lex.LoadCheckpoint(from)
	return participle.NextMatch
}

// A Right is the right side of an assignment, or a statement that assigns nothing: an
// expression, or an op of flat text, as `matmul %x, @w {slices=2}`.
type Right struct {
	Expr *Expr // of flat text a call
	Flat bool
}

// Parse parses either.
func (r *Right) Parse(lex *lexer.PeekingLexer) error {
	p := &exprParser{lex: lex}
	tok := lex.Peek()
	if tok.Type == tokKeyword || tok.Type == tokEOL || tok.Value == "}" {
		return participle.NextMatch
	}
	if tok.Type == tokIdent {
		at := lex.MakeCheckpoint()
		lex.Next()
		next := lex.Peek()
		if flat := next.Type == tokValue || next.Type == tokWeight || next.Value == "{" || next.Value == ":"; flat {
			r.Flat = true
			r.Expr = &Expr{Pos: tok.Pos, Kind: CallExpr, Text: tok.Value}
			p.flat(r.Expr)
			return p.err
		}
		lex.LoadCheckpoint(at)
	}
	r.Expr = p.expr()
	return p.err
}

// A CallOf is an expression that is a call.
type CallOf struct{ Expr }

// Parse parses a call.
func (c *CallOf) Parse(lex *lexer.PeekingLexer) error {
	at := lex.MakeCheckpoint()
	name := lex.Next()
	call := name.Type == tokIdent && lex.Peek().Value == "("
	lex.LoadCheckpoint(at)
	if !call {
		return participle.NextMatch
	}
	return c.Expr.Parse(lex)
}

// flat parses the arguments and attributes of an op of flat text.
func (p *exprParser) flat(x *Expr) {
	for tok := p.lex.Peek(); tok.Type == tokValue || tok.Type == tokWeight || len(x.Args) > 0; tok = p.lex.Peek() {
		if tok.Type != tokValue && tok.Type != tokWeight {
			p.fail("a value or weight")
			return
		}
		x.Args = append(x.Args, p.postfix(p.primary()))
		if !p.take(",") {
			break
		}
	}
	if !p.take("{") {
		return
	}
	for !p.take("}") && p.err == nil {
		tok := p.lex.Peek()
		if tok.Type != tokIdent && tok.Type != tokKeyword {
			p.fail("an attribute")
			return
		}
		p.lex.Next()
		a := &Named{Pos: tok.Pos, Name: tok.Value}
		if p.take("=") {
			a.Val = p.word()
		}
		x.Named = append(x.Named, a)
		if !p.take(",") {
			p.expect("}")
			return
		}
	}
}

// word parses an attribute's value, which may be a keyword.
func (p *exprParser) word() *Expr {
	if tok := p.lex.Peek(); tok.Type == tokKeyword {
		p.lex.Next()
		return &Expr{Pos: tok.Pos, Kind: NameRef, Text: tok.Value}
	}
	return p.expr()
}
