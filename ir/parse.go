package ir

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// Bounds of untrusted text: its bytes, because a module takes a thousand times as much
// memory, and the nesting of its brackets, because the parser is recursive.
const (
	maxText    = 16 << 20
	maxNesting = 64
)

// Parse parses a module. Types after ops are optional: they are inferred, and
// compared if given. The error joins the *Errors found, each printed as
// "file:line:col: …". Parse does not verify the module; see Verify.
func Parse(file string, src []byte, ops OpSet) (*Module, error) {
	if len(src) > maxText {
		return nil, &Error{Pos: Pos{file, 1, 1}, Msg: fmt.Sprintf("the text has more than %d bytes", maxText)}
	}
	if err := checkNesting(file, src); err != nil {
		return nil, err
	}
	g, err := irParser.ParseBytes(file, src)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	p := &parser{ops: ops, mod: &Module{Pos: pos(g.Pos)}}
	p.mod.Name = p.unquote(g.Pos, g.Name)
	p.module(g)
	if err := p.errs.err(); err != nil {
		return nil, err
	}
	return p.mod, nil
}

// A parser converts the grammar's structs to a module.
type parser struct {
	ops   OpSet
	mod   *Module
	graph *Graph
	scope []map[string]*Value // innermost last; scope[0] holds the states
	errs  errorList
}

func pos(p lexer.Position) Pos { return Pos{File: p.Filename, Line: p.Line, Col: p.Column} }

// grammarName matches names of grammar structs in participle's messages.
var grammarName = regexp.MustCompile(`\bG[A-Z][A-Za-z]+`)

// syntaxError converts an error of participle to an Error.
func syntaxError(file string, err error) error {
	var pe participle.Error
	if !errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", file, err)
	}
	msg := strings.NewReplacer(`"\n"`, "end of line", "<eol>+", "end of line", "<eol>*", "", "<eol>", "end of line").Replace(pe.Message())
	msg = grammarName.ReplaceAllStringFunc(msg, func(s string) string { return "<" + strings.ToLower(s[1:]) + ">" })
	at := pos(pe.Position())
	if at.File == "" {
		at.File = file
	}
	if strings.Contains(msg, `token "<EOF>"`) {
		msg = "the text ends too early; a closing } may be missing" + strings.TrimPrefix(msg, `unexpected token "<EOF>"`)
	}
	if rest, ok := strings.CutPrefix(msg, "lexer: invalid input text "); ok {
		msg = "unexpected text " + rest
	}
	return &Error{Pos: at, Msg: msg}
}

func checkNesting(file string, src []byte) error {
	depth, line, col := 0, 1, 0
	inString, inComment := false, false
	for i, c := range src {
		col++
		switch {
		case c == '\n':
			line, col, inString, inComment = line+1, 0, false, false
		case inComment:
		case c == '"' && !(inString && escaped(src, i)):
			inString = !inString
		case inString:
		case c == '#':
			inComment = true
		case c == '{' || c == '(' || c == '[':
			depth++
		case c == '}' || c == ')' || c == ']':
			depth--
		}
		if depth > maxNesting {
			return &Error{Pos: Pos{file, line, col}, Msg: fmt.Sprintf("brackets nest deeper than %d", maxNesting)}
		}
	}
	return nil
}

// escaped reports whether an odd number of backslashes precedes the byte at i.
func escaped(src []byte, i int) bool {
	n := 0
	for i--; i >= 0 && src[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

func (p *parser) module(g *gModule) {
	p.scope = []map[string]*Value{{}}
	for _, d := range g.Decls {
		switch {
		case d.Weight != nil:
			p.weight(d.Weight)
		case d.State != nil:
			p.state(d.State)
		}
	}
	for _, d := range g.Decls {
		if d.Graph != nil {
			p.parseGraph(d.Graph)
		}
	}
}

func (p *parser) weight(g *gWeight) {
	v := &Value{Name: g.Name[1:], Kind: Weight, Count: p.counts(g.Count), Type: p.typ(g.Type), Pos: pos(g.Pos)}
	if g.Transform != nil {
		v.Transform = p.transform(g.Transform)
	}
	if p.mod.Weight(v.Name) != nil {
		p.errs.addf(v.Pos, "weight %s is declared twice", v)
		return
	}
	p.mod.Weights = append(p.mod.Weights, v)
}

func (p *parser) state(g *gState) {
	v := &Value{Name: g.Name[1:], Kind: State, Count: p.counts(g.Count), State: &StateType{Source: g.Source, Fixed: len(g.Fixed) > 0}, Pos: pos(g.Pos)}
	for _, f := range append(g.Fixed, g.Fields...) {
		t := p.typ(f.Type)
		field := Field{Name: f.Name, Elem: t.Elem}
		for _, s := range t.Shape {
			field.Shape = append(field.Shape, s.N)
		}
		v.State.Fields = append(v.State.Fields, field)
	}
	if g.Page != "" {
		v.State.Page = p.int(v.Pos, g.Page)
	}
	if g.Window != "" {
		v.State.Window = p.int(v.Pos, g.Window)
	}
	p.define(v)
	p.mod.States = append(p.mod.States, v)
}

// formerNames maps renamed words of graphs in user files to the current ones.
var formerNames = map[string]string{"wanted": "out_rows"}

func current(name string) string { return cmp.Or(formerNames[name], name) }

func (p *parser) parseGraph(g *gGraph) {
	p.graph = &Graph{Name: g.Name, Pos: pos(g.Pos)}
	for _, d := range g.Dims {
		p.graph.Dims = append(p.graph.Dims, &Dim{Name: d.Name, Role: current(d.Role)})
	}
	p.scope = append(p.scope[:1:1], map[string]*Value{})
	p.graph.Body = &Block{}
	p.stmts(p.graph.Body, g.Stmts)
	p.mod.Graphs = append(p.mod.Graphs, p.graph)
	p.graph = nil
}

// define adds a value to the innermost scope.
func (p *parser) define(v *Value) {
	for _, s := range p.scope {
		if old := s[v.Name]; old != nil {
			p.errs.addf(v.Pos, "%s is defined twice, first at %s", v, old.Pos)
			return
		}
	}
	p.scope[len(p.scope)-1][v.Name] = v
}

func (p *parser) lookup(at Pos, name string) *Value {
	if name[0] == '@' {
		if v := p.mod.Weight(name[1:]); v != nil {
			return v
		}
		p.errs.addf(at, "unknown weight %s%s", name, didYouMean(name, valueNames(p.mod.Weights)))
		return nil
	}
	var names []string
	for _, s := range p.scope {
		if v := s[name[1:]]; v != nil {
			return v
		}
		for _, v := range s {
			names = append(names, v.String())
		}
	}
	p.errs.addf(at, "%s is not defined here%s", name, didYouMean(name, sorted(names)))
	return nil
}
