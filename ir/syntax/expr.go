package syntax

import (
	"slices"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// A Kind is the form of an expression.
type Kind uint8

// The forms of expressions, which are those of Starlark, with values, weights and keys of
// config.json.
const (
	NumberLit  Kind = iota // Text
	StringLit              // Text, in double or single quotes; see Unquote
	NameRef                // Text
	ValueRef               // Text, with %
	WeightRef              // Text, with @
	ConfigRef              // Text, with $ and dots in front of keys of a mapping and numbers of entries
	ListExpr               // Args
	CompExpr               // Args: element, list, condition if there is one; Text: the variable
	UnaryExpr              // Text: the operator; Args: the operand
	BinaryExpr             // Text: the operator; Args: both operands
	CondExpr               // Args: value, condition, value if it is false
	CallExpr               // Text: what is called; Args, Named, As
	IndexExpr              // Args: what has elements, indices
)

// An Expr is an expression.
type Expr struct {
	Pos   lexer.Position
	Kind  Kind
	Text  string
	Args  []*Expr
	Named []*Named // arguments of a call that have a name, in braces or parentheses
	As    *Path    // of a call: the instance's name
}

// A Named is an argument with a name. Of a flag in braces the value is nil.
type Named struct {
	Pos  lexer.Position
	Name string
	Val  *Expr
}

// A Path is the name of an instance below the current one, such as self_attn.pre_norm or
// shared[k].
type Path struct {
	Pos   lexer.Position
	Name  string
	Index *Expr // nil: none
}

// Parse parses an expression.
func (e *Expr) Parse(lex *lexer.PeekingLexer) error {
	p := &exprParser{lex: lex}
	if x := p.expr(); p.err == nil {
		*e = *x
	}
	return p.err
}

// Bounds of one expression: how deep it nests, and how many operators or indices follow each
// other.
const (
	maxDepth = 64
	maxChain = 256
)

type exprParser struct {
	lex   *lexer.PeekingLexer
	depth int
	err   error
}

// fail records the first error. Its result takes the place of what could not be parsed.
func (p *exprParser) fail(want string) *Expr {
	if tok := p.lex.Peek(); p.err == nil {
		p.err = participle.Errorf(tok.Pos, "unexpected token %q (expected %s)", tok.Value, want)
	}
	return &Expr{}
}

// take consumes a token of the given text.
func (p *exprParser) take(text string) bool {
	if tok := p.lex.Peek(); p.err == nil && tok.Value == text && tok.Type != tokString {
		p.lex.Next()
		return true
	}
	return false
}

func (p *exprParser) expect(text string) {
	if !p.take(text) {
		p.fail(`"` + text + `"`)
	}
}

// expr parses an expression: `a if c else b` binds least.
func (p *exprParser) expr() *Expr {
	return p.nested(p.conditional)
}

func (p *exprParser) conditional() *Expr {
	x := p.binary(0)
	if at := p.lex.Peek().Pos; p.take("if") {
		c := p.binary(0)
		p.expect("else")
		return &Expr{Pos: at, Kind: CondExpr, Args: []*Expr{x, c, p.expr()}}
	}
	return x
}

// levels are the binary operators, those that bind least first. In front of "not" is the
// place of the unary operator.
var levels = [][]string{{"or"}, {"and"}, {"not"}, {"==", "!=", "<", ">", "<=", ">=", "in", "not in"}, {"|"}, {"+", "-"}, {"*", "/", "//", "%"}}

// comparison is the level whose operators do not associate.
const comparison = 3

func (p *exprParser) binary(level int) *Expr {
	switch {
	case p.err != nil:
		return &Expr{}
	case level == len(levels):
		return p.unary()
	case level == comparison-1:
		if at := p.lex.Peek().Pos; p.take("not") {
			return &Expr{Pos: at, Kind: UnaryExpr, Text: "not", Args: []*Expr{p.nested(func() *Expr { return p.binary(level) })}}
		}
		return p.binary(level + 1)
	}
	x := p.binary(level + 1)
	for n := 0; ; n++ {
		at := p.lex.Peek().Pos
		op := p.operator(level)
		if op == "" {
			return x
		}
		if level == comparison && n > 0 {
			p.err = participle.Errorf(at, "unexpected %q: comparisons have no chains; use and", op)
			return x
		}
		p.long(n)
		x = &Expr{Pos: at, Kind: BinaryExpr, Text: op, Args: []*Expr{x, p.binary(level + 1)}}
	}
}

// long fails for too many operators or indices one after the other.
func (p *exprParser) long(n int) {
	if n > maxChain && p.err == nil {
		p.err = participle.Errorf(p.lex.Peek().Pos, "more than %d operators follow each other; use parentheses", maxChain)
	}
}

// nested parses what may nest.
func (p *exprParser) nested(f func() *Expr) *Expr {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth && p.err == nil {
		p.err = participle.Errorf(p.lex.Peek().Pos, "expressions nest deeper than %d", maxDepth)
	}
	if p.err != nil {
		return &Expr{}
	}
	return f()
}

// operator consumes a binary operator of a level.
func (p *exprParser) operator(level int) string {
	tok := p.lex.Peek()
	if p.err != nil || tok.Type != tokPunct && tok.Type != tokIdent {
		return ""
	}
	if tok.Value == "not" && level == comparison {
		at := p.lex.MakeCheckpoint()
		p.lex.Next()
		if p.take("in") {
			return "not in"
		}
		p.lex.LoadCheckpoint(at)
		return ""
	}
	if !slices.Contains(levels[level], tok.Value) {
		return ""
	}
	p.lex.Next()
	return tok.Value
}

func (p *exprParser) unary() *Expr {
	at := p.lex.Peek().Pos
	for _, op := range []string{"-", "+"} {
		if p.take(op) {
			return &Expr{Pos: at, Kind: UnaryExpr, Text: op, Args: []*Expr{p.nested(p.unary)}}
		}
	}
	return p.postfix(p.primary())
}

// reserved are the words of operators.
var reserved = []string{"and", "or", "not", "in"}

var leaves = map[lexer.TokenType]Kind{tokNumber: NumberLit, tokString: StringLit, tokIdent: NameRef, tokValue: ValueRef, tokWeight: WeightRef, tokConfig: ConfigRef}

func (p *exprParser) primary() *Expr {
	tok := p.lex.Peek()
	x := &Expr{Pos: tok.Pos, Text: tok.Value}
	kind, leaf := leaves[tok.Type]
	switch {
	case p.err != nil:
	case leaf && !(kind == NameRef && slices.Contains(reserved, tok.Value)):
		x.Kind = kind
		p.lex.Next()
	case p.take("("):
		x = p.expr()
		p.expect(")")
	case p.take("["):
		x = &Expr{Pos: tok.Pos, Kind: ListExpr}
		p.list(x)
	default:
		return p.fail("an expression")
	}
	return x
}

// list parses what follows the opening bracket of a list or comprehension.
func (p *exprParser) list(x *Expr) {
	for !p.take("]") {
		if p.err != nil {
			return
		}
		x.Args = append(x.Args, p.expr())
		switch {
		case p.take(","):
		case len(x.Args) == 1 && p.take("for"):
			p.comprehension(x)
			return
		default:
			p.expect("]")
			return
		}
	}
}

func (p *exprParser) comprehension(x *Expr) {
	x.Kind = CompExpr
	tok := p.lex.Peek()
	if tok.Type != tokIdent {
		p.fail("a name")
		return
	}
	x.Text = tok.Value
	p.lex.Next()
	p.expect("in")
	x.Args = append(x.Args, p.binary(0))
	if p.take("if") {
		x.Args = append(x.Args, p.binary(0))
	}
	p.expect("]")
}

// postfix parses calls and indices.
func (p *exprParser) postfix(x *Expr) *Expr {
	for n := 0; p.err == nil; n++ {
		p.long(n)
		at := p.lex.Peek().Pos
		switch {
		case x.Kind == NameRef && p.take("("):
			x = &Expr{Pos: x.Pos, Kind: CallExpr, Text: x.Text}
			p.args(x)
			if p.take("as") {
				p.path(x)
			}
		case p.take("["):
			x = &Expr{Pos: at, Kind: IndexExpr, Args: []*Expr{x}}
			n := &Expr{}
			p.list(n)
			if n.Kind == CompExpr || len(n.Args) == 0 {
				p.fail("an index")
			}
			x.Args = append(x.Args, n.Args...)
		default:
			return x
		}
	}
	return x
}

// args parses the arguments of a call: by position, then by name.
func (p *exprParser) args(x *Expr) {
	for !p.take(")") {
		if p.err != nil {
			return
		}
		if !p.named(x) {
			if len(x.Named) > 0 {
				p.fail("name = value")
			}
			x.Args = append(x.Args, p.expr())
		}
		if !p.take(",") {
			p.expect(")")
			return
		}
	}
}

// named parses an argument with a name, if the next one has one.
func (p *exprParser) named(x *Expr) bool {
	tok := p.lex.Peek()
	if tok.Type != tokIdent && tok.Type != tokKeyword {
		return false
	}
	at := p.lex.MakeCheckpoint()
	p.lex.Next()
	if !p.take("=") {
		p.lex.LoadCheckpoint(at)
		return false
	}
	x.Named = append(x.Named, &Named{tok.Pos, tok.Value, p.expr()})
	return true
}

// path parses the name of an instance.
func (p *exprParser) path(x *Expr) {
	x.As = &Path{Pos: p.lex.Peek().Pos}
	for {
		tok := p.lex.Peek()
		if tok.Type != tokIdent && tok.Type != tokKeyword {
			p.fail("a name")
			return
		}
		p.lex.Next()
		x.As.Name += tok.Value
		if !p.take(".") {
			break
		}
		x.As.Name += "."
	}
	if p.take("[") {
		x.As.Index = p.expr()
		p.expect("]")
	}
}

// Start returns where the expression begins.
func (e *Expr) Start() lexer.Position {
	if (e.Kind == BinaryExpr || e.Kind == CondExpr || e.Kind == IndexExpr) && len(e.Args) > 0 {
		return e.Args[0].Start()
	}
	return e.Pos
}

// Number returns the text of a number with its sign.
func (e *Expr) Number() (text string, ok bool) {
	if e.Kind == UnaryExpr && e.Args[0].Kind == NumberLit && e.Text != "not" {
		return strings.TrimPrefix(e.Text, "+") + e.Args[0].Text, true
	}
	return e.Text, e.Kind == NumberLit
}
