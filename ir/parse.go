package ir

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// Parse parses a module. Types after ops are optional: they are inferred, and
// compared if given. The error joins the *Errors found, each printed as
// "file:line:col: …". Parse does not verify the module; see Verify.
func Parse(file string, src []byte, ops OpSet) (*Module, error) {
	f, err := syntax.Parse(file, src)
	var at *syntax.Error
	switch {
	case errors.As(err, &at):
		return nil, &Error{pos(at.Pos), at.Msg}
	case err != nil:
		return nil, err
	case len(f.Modules) != 1:
		return nil, &Error{Pos{file, 1, 1}, fmt.Sprintf("%d modules, expected one", len(f.Modules))}
	}
	g := f.Modules[0]
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

// notFlat reports a part of the language of modules that a module of the IR cannot have.
func (p *parser) notFlat(at lexer.Position, what string) {
	p.errs.addf(pos(at), "%s belongs in a module of the library; the text of a model's graphs has none", what)
}

func (p *parser) module(g *syntax.Module) {
	p.scope = []map[string]*Value{{}}
	if len(g.Args) > 0 {
		p.notFlat(g.Args[0].Pos, "an argument")
	}
	for _, d := range g.Items {
		switch {
		case d.Stmt != nil && d.Stmt.Weight != nil:
			p.weight(d.Stmt.Weight)
		case d.Stmt != nil && d.Stmt.State != nil:
			p.state(d.Stmt.State)
		case d.Param != nil:
			p.notFlat(d.Param.Pos, "param")
		case d.Stmt != nil:
			p.errs.addf(pos(d.Stmt.Pos), "statement outside of a graph")
		}
	}
	for _, d := range g.Items {
		if d.Graph != nil {
			p.parseGraph(d.Graph)
		}
	}
}

func (p *parser) weight(g *syntax.Weight) {
	v := &Value{Name: g.Name[1:], Kind: Weight, Count: p.counts(g.Count), Type: p.typ(g.Type), Pos: pos(g.Pos)}
	if len(g.From) > 0 {
		v.Transform = p.transform(g.From[0])
	}
	if len(g.From) > 1 || g.Optional {
		p.notFlat(g.Pos, "a choice of tensors")
	}
	if p.mod.Weight(v.Name) != nil {
		p.errs.addf(v.Pos, "weight %s is declared twice", v)
		return
	}
	p.mod.Weights = append(p.mod.Weights, v)
}

func (p *parser) state(g *syntax.State) {
	v := &Value{Name: g.Name[1:], Kind: State, Count: p.counts(g.Count), State: &StateType{Source: g.Source, Fixed: len(g.Fixed) > 0}, Pos: pos(g.Pos)}
	if g.Call != nil {
		p.notFlat(g.Call.Pos, "a state with its fields in parentheses")
	}
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

func (p *parser) parseGraph(g *syntax.Graph) {
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
		p.errs.addf(at, "unknown weight %s%s", name, spelling.DidYouMean(name, valueNames(p.mod.Weights)))
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
	p.errs.addf(at, "%s is not defined here%s", name, spelling.DidYouMean(name, sorted(names)))
	return nil
}
