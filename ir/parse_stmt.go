package ir

import (
	"slices"

	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

func valueNames(vs []*Value) []string {
	var names []string
	for _, v := range vs {
		names = append(names, v.String())
	}
	return names
}

func sorted(names []string) []string { slices.Sort(names); return names }

// stmts converts the statements of a block. After an invalid statement it continues
// with the rest and poisons the missing results (see poison).
func (p *parser) stmts(b *Block, gs []*syntax.Stmt) {
	yielded := false
	for _, g := range gs {
		switch {
		case yielded:
			p.errs.addf(pos(g.Pos), "statement after yield; yield must be the last statement of a block")
			return
		case g.Input != nil:
			p.input(b, g)
		case g.Yield != nil:
			yielded = true
			for _, e := range g.Yield.Args {
				if a, ok := p.arg(e); ok {
					b.Yield = append(b.Yield, a.Value)
					if a.Index != nil {
						p.errs.addf(pos(e.Pos), "yield of %s: unexpected index", a.Value)
					}
				}
			}
		case g.Op == nil:
			p.errs.addf(pos(g.Pos), "expected an op; declarations, if and for have no place in the text of a graph")
		default:
			if op := p.op(g.Op); op != nil {
				b.Ops = append(b.Ops, op)
			}
		}
	}
}

func (p *parser) input(b *Block, g *syntax.Stmt) {
	name := g.Input.Name[1:]
	v := &Value{Name: current(name), Kind: Input, Type: p.typ(g.Input.Type), Pos: pos(g.Pos)}
	if b != p.graph.Body || len(b.Ops) > 0 {
		p.errs.addf(v.Pos, "input %s is inside a region or after an op; inputs must be first in their graph", v)
	}
	p.define(v)
	p.scope[len(p.scope)-1][name] = v
	p.graph.Inputs = append(p.graph.Inputs, v)
}

// op converts one op. On an error it defines the results without a type, so that
// later uses of them are not reported too.
func (p *parser) op(g *syntax.Op) *Op {
	before := len(p.errs)
	o := &Op{Pos: pos(g.Pos)}
	switch {
	case g.Repeat != nil:
		p.repeat(o, g.Repeat)
	case g.Fuse != nil:
		o.Def = Fuse
		o.Body = p.body(g.Fuse, nil)
	case g.Par != nil:
		o.Def = Par
		o.Attrs.Set("ranks", p.int(o.Pos, g.Par.Ranks))
		o.Body = p.body(g.Par.Body, nil)
	default:
		p.plain(o, g.Right)
	}
	for _, n := range g.Annotations {
		o.Annotations = append(o.Annotations, p.annotation(n))
	}
	var types []Type
	if len(p.errs) == before && !poisoned(o) {
		t, err := o.infer()
		if err != nil {
			p.errs.addf(o.Pos, "%v", err)
		}
		types = t
	}
	p.results(o, g, types, len(p.errs) == before && !poisoned(o))
	return o
}

// poisoned reports whether an argument or a yield is the result of an invalid op,
// which has already been reported.
func poisoned(o *Op) bool {
	bad := func(v *Value) bool { return v.Kind != State && v.Type.Elem == tensor.Invalid }
	for _, a := range o.Args {
		if bad(a.Value) {
			return true
		}
	}
	return o.Body != nil && (slices.ContainsFunc(o.Body.Yield, bad) || slices.ContainsFunc(o.Body.Params, bad))
}

func (p *parser) results(o *Op, g *syntax.Op, types []Type, ok bool) {
	var names []*syntax.Target
	if g.Targets != nil {
		names = g.Targets.List
	}
	if ok && len(types) != len(names) {
		p.errs.addf(o.Pos, "op %s yields %d values but %d names are given", o.Def.Name, len(types), len(names))
		ok = false
	}
	if ok && g.Types != nil && len(g.Types) != len(types) {
		p.errs.addf(o.Pos, "op %s yields %d values but %d types are given", o.Def.Name, len(types), len(g.Types))
		ok = false
	}
	for i, n := range names {
		if n.Name[0] != '%' {
			p.notFlat(n.Pos, "a name without %")
		}
		v := &Value{Name: n.Name[1:], Kind: Result, Op: o, Pos: pos(n.Pos)}
		if ok {
			v.Type = types[i]
			if g.Types != nil {
				if given := p.typ(g.Types[i]); given.Elem != tensor.Invalid && !given.Equal(v.Type) {
					p.errs.addf(pos(g.Types[i].Pos), "%s is declared as %s but op %s returns %s", v, given, o.Def.Name, v.Type)
				}
			}
		}
		p.define(v)
		o.Results = append(o.Results, v)
	}
}

func (p *parser) repeat(o *Op, g *syntax.Repeat) {
	o.Def = Repeat
	o.Attrs = Attrs{{"lo", p.int(o.Pos, g.Lo)}, {"hi", p.int(o.Pos, g.Hi)}}
	var params []*Value
	for _, c := range g.Carry {
		init, ok := p.arg(c.Init)
		v := &Value{Name: c.Name[1:], Kind: Carry, Pos: pos(c.Pos)}
		if ok {
			v.Type = Type{init.Type.Elem, slices.Clone(init.Type.Shape)}
			o.Args = append(o.Args, init)
		}
		params = append(params, v)
	}
	o.Body = p.body(g.Body, params)
}

func (p *parser) body(g *syntax.Body, params []*Value) *Block {
	p.scope = append(p.scope, map[string]*Value{})
	defer func() { p.scope = p.scope[:len(p.scope)-1] }()
	b := &Block{Params: params}
	for _, v := range params {
		p.define(v)
	}
	p.stmts(b, g.Stmts)
	return b
}

// plain converts an op: `matmul %x, @w {slices=2}`, or `matmul(%x, @w, slices = 2)`.
func (p *parser) plain(o *Op, g *syntax.Right) {
	e := g.Expr
	if e.Kind != syntax.CallExpr || e.As != nil {
		p.notFlat(e.Pos, "an expression that is no op")
		o.Def = &OpDef{}
		return
	}
	o.Def = p.ops.Lookup(e.Text)
	if o.Def == nil || o.Def.Is(HasBody) {
		p.errs.addf(pos(e.Pos), "unknown op %s%s", e.Text, spelling.DidYouMean(e.Text, p.ops.Names()))
		o.Def = &OpDef{Name: e.Text}
	}
	for _, a := range e.Args {
		if arg, ok := p.arg(a); ok {
			o.Args = append(o.Args, arg)
		}
	}
	for i, a := range o.Args {
		if isCurrent(a.Index) && len(a.Index) == o.IndexCount(i) {
			o.Args[i].Index = nil
		}
	}
	for _, a := range e.Named {
		p.attr(o, a)
	}
	o.Attrs = o.Attrs.normalize(o.Def)
}

func (p *parser) arg(e *syntax.Expr) (Arg, bool) {
	of, indices := e, []*syntax.Expr(nil)
	if e.Kind == syntax.IndexExpr {
		of, indices = e.Args[0], e.Args[1:]
	}
	if of.Kind != syntax.ValueRef && of.Kind != syntax.WeightRef {
		p.notFlat(e.Pos, "an expression in place of a value or weight")
		return Arg{}, false
	}
	v := p.lookup(pos(of.Pos), of.Text)
	if v == nil {
		return Arg{}, false
	}
	a := Arg{Value: v}
	for _, x := range indices {
		index, err := tensor.ParseIndex(x.String())
		if err != nil {
			p.errs.addf(pos(x.Start()), "%v", err)
		}
		a.Index = append(a.Index, index)
	}
	return a, true
}
