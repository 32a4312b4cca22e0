package ir

import (
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
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
func (p *parser) stmts(b *Block, gs []*gStmt) {
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
			for _, a := range g.Yield.Args {
				if v := p.lookup(pos(a.Pos), a.Name); v != nil {
					b.Yield = append(b.Yield, v)
				}
				if a.Index != nil {
					p.errs.addf(pos(a.Pos), "yield of %s: unexpected index", a.Name)
				}
			}
		default:
			if op := p.op(g.Op); op != nil {
				b.Ops = append(b.Ops, op)
			}
		}
	}
}

func (p *parser) input(b *Block, g *gStmt) {
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
func (p *parser) op(g *gOp) *Op {
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
		o.Attrs.Set("ranks", p.int(o.Pos, g.Par.TPSize))
		o.Body = p.body(g.Par.Body, nil)
	default:
		p.plain(o, g.Plain)
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

func (p *parser) results(o *Op, g *gOp, types []Type, ok bool) {
	if ok && len(types) != len(g.Results) {
		p.errs.addf(o.Pos, "op %s yields %d values but %d names are given", o.Def.Name, len(types), len(g.Results))
		ok = false
	}
	if ok && g.Types != nil && len(g.Types) != len(types) {
		p.errs.addf(o.Pos, "op %s yields %d values but %d types are given", o.Def.Name, len(types), len(g.Types))
		ok = false
	}
	for i, n := range g.Results {
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

func (p *parser) repeat(o *Op, g *gRepeat) {
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

func (p *parser) body(g *gBody, params []*Value) *Block {
	p.scope = append(p.scope, map[string]*Value{})
	defer func() { p.scope = p.scope[:len(p.scope)-1] }()
	b := &Block{Params: params}
	for _, v := range params {
		p.define(v)
	}
	p.stmts(b, g.Stmts)
	return b
}

func (p *parser) plain(o *Op, g *gPlain) {
	o.Def = p.ops.Lookup(g.Name)
	if o.Def == nil || o.Def.Is(HasBody) {
		p.errs.addf(pos(g.Pos), "unknown op %s%s", g.Name, didYouMean(g.Name, p.ops.Names()))
		o.Def = &OpDef{Name: g.Name}
	}
	for _, a := range g.Args {
		if arg, ok := p.arg(a); ok {
			o.Args = append(o.Args, arg)
		}
	}
	for i, a := range o.Args {
		if isCurrent(a.Index) && len(a.Index) == o.IndexCount(i) {
			o.Args[i].Index = nil
		}
	}
	for _, a := range g.Attrs {
		p.attr(o, a)
	}
	o.Attrs = o.Attrs.normalize(o.Def)
}

func (p *parser) arg(g *gArg) (Arg, bool) {
	v := p.lookup(pos(g.Pos), g.Name)
	if v == nil {
		return Arg{}, false
	}
	a := Arg{Value: v}
	for _, x := range g.Index {
		index, err := tensor.ParseIndex(strings.Join(x.Words, " "))
		if err != nil {
			p.errs.addf(pos(x.Pos), "%v", err)
		}
		a.Index = append(a.Index, index)
	}
	return a, true
}
