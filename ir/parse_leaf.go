package ir

import (
	"math"
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// maxSize is the maximum value of one size, far above real models. The verifier
// checks products of sizes for overflow.
const maxSize = 1 << 31

func (p *parser) int(at Pos, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n > maxSize || n < -maxSize {
		p.errs.addf(at, "%s is not an integer up to %d", text, maxSize)
		return 0
	}
	return n
}

func (p *parser) float(at Pos, text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.errs.addf(at, "%s is not a number that fits a float64", text)
	}
	return f
}

func (p *parser) counts(gs []*syntax.Count) []Range {
	var out []Range
	for _, g := range gs {
		r := Range{0, p.int(pos(g.Pos), g.N)}
		if g.Hi != "" {
			r = Range{r.Hi, p.int(pos(g.Pos), g.Hi)}
		}
		if r.Lo < 0 || r.Hi <= r.Lo {
			p.errs.addf(pos(g.Pos), "index range %d..%d is empty or negative", r.Lo, r.Hi)
		}
		out = append(out, r)
	}
	return out
}

// typ converts a type; names of sizes refer to dims of the current graph.
func (p *parser) typ(g *syntax.Type) Type {
	elem, ok := tensor.ParseDType(g.Elem)
	if !ok || elem == tensor.Invalid {
		p.errs.addf(pos(g.Pos), "unknown element type %s", g.Elem)
		elem = tensor.Invalid
	}
	t := Type{Elem: elem}
	for _, s := range g.Sizes {
		t.Shape = append(t.Shape, p.size(s))
	}
	return t
}

func (p *parser) size(e *syntax.Expr) Size {
	at := pos(e.Pos)
	text, number := e.Number()
	if number {
		n := p.int(at, text)
		if n <= 0 {
			p.errs.addf(at, "size %s is not positive", text)
		}
		return N(n)
	}
	var names []string
	if p.graph != nil && e.Kind == syntax.NameRef {
		for _, d := range p.graph.Dims {
			if d.Name == text {
				return Size{Dim: d}
			}
			names = append(names, d.Name)
		}
	}
	p.errs.addf(at, "unknown size %s, expected a number or one of the graph's dims [%s]", e, strings.Join(names, ", "))
	return N(1)
}

func (p *parser) attr(o *Op, g *syntax.Named) {
	at := pos(g.Pos)
	d := o.Def.Attr(g.Name)
	if d == nil {
		if p.ops.Lookup(o.Def.Name) != nil {
			p.errs.addf(at, "op %s: unknown attribute %s%s", o.Def.Name, g.Name, spelling.DidYouMean(g.Name, o.Def.attrNames()))
		}
		return
	}
	if o.Has(g.Name) {
		p.errs.addf(at, "op %s: duplicate attribute %s", o.Def.Name, g.Name)
		return
	}
	val := p.attrVal(d, g.Val, at)
	if val == nil {
		p.errs.addf(at, "op %s: attribute %s: expected %s", o.Def.Name, g.Name, article(d.Kind.String()))
		return
	}
	if err := d.check(val); err != nil {
		p.errs.addf(at, "op %s: attribute %s: %v", o.Def.Name, g.Name, err)
		return
	}
	o.Attrs.Set(g.Name, val)
}

// attrVal converts a value, nil for none, to the kind of its declaration; nil if the value
// is of another kind.
func (p *parser) attrVal(d *AttrDef, v *syntax.Expr, at Pos) any {
	if v == nil {
		if d.Kind == BoolAttr {
			return true
		}
		return nil
	}
	num, isNum := v.Number()
	switch isWord := v.Kind == syntax.NameRef; d.Kind {
	case IntAttr, PerLayerInt:
		if isNum {
			return p.int(at, num)
		}
	case FloatAttr, PerLayerFloat:
		if isNum {
			return p.float(at, num)
		}
	case WordAttr:
		if isWord {
			return v.Text
		}
	case DTypeAttr:
		if t, ok := tensor.ParseDType(v.Text); ok && isWord {
			return t
		}
	case BoolAttr:
		if isWord && (v.Text == "true" || v.Text == "false") {
			return v.Text == "true"
		}
	}
	if v.Kind != syntax.ListExpr {
		return nil
	}
	switch d.Kind {
	case IntsAttr, PerLayerInt:
		return listOf(v, at, p.int)
	case FloatsAttr, PerLayerFloat:
		return listOf(v, at, p.float)
	}
	return nil
}

// listOf converts a list of numbers; nil if it has something else.
func listOf[N int | float64](v *syntax.Expr, at Pos, convert func(at Pos, text string) N) any {
	list := make([]N, 0, len(v.Args))
	for _, x := range v.Args {
		num, ok := x.Number()
		if !ok {
			return nil
		}
		list = append(list, convert(at, num))
	}
	return list
}

func (p *parser) annotation(g *syntax.Annotation) Annotation {
	n := Annotation{Name: g.Name[1:]}
	for _, a := range g.Args {
		arg := AnnotationArg{Val: p.unquote(a.Pos, a.First)}
		if a.From != "" {
			arg = AnnotationArg{Of: a.First, From: p.int(pos(a.Pos), a.From), Val: p.unquote(a.Pos, a.Val)}
			if arg.Of != "rows" && arg.Of != "layer" {
				p.errs.addf(pos(a.Pos), "annotation !%s: bound on %s, expected rows or layer", n.Name, arg.Of)
			}
		}
		n.Args = append(n.Args, arg)
	}
	return n
}

// unquote returns a word, which may be in quotes.
func (p *parser) unquote(at lexer.Position, text string) string {
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	s, err := strconv.Unquote(text)
	if err != nil {
		p.errs.addf(pos(at), "bad string %s", text)
	}
	return s
}

func (p *parser) transform(e *syntax.Expr) *tensor.Transform {
	r := &tensor.Transform{}
	switch e.Kind {
	case syntax.WeightRef:
		return &tensor.Transform{Op: "weight", Name: e.Text[1:]}
	case syntax.StringLit:
		r = tensor.Source(p.unquote(e.Pos, e.Text))
	case syntax.CallExpr, syntax.NameRef:
		r.Op = e.Text
		for _, a := range e.Args {
			p.transformArg(r, a)
		}
		if len(e.Named) > 0 || e.As != nil {
			p.errs.addf(pos(e.Pos), "transform %s: arguments of transforms have no names", r.Op)
		}
	default:
		p.errs.addf(pos(e.Pos), "%s is no transform of stored tensors", e)
		return r
	}
	if err := CheckTransform(r); err != nil {
		p.errs.addf(pos(e.Pos), "%v", err)
	}
	return r
}

// transformArg assigns an argument of a transform by position: operands first, then
// numbers, then an element type, then a word, as Transform.String prints them.
func (p *parser) transformArg(r *tensor.Transform, e *syntax.Expr) {
	at := pos(e.Pos)
	num, isNum := e.Number()
	switch {
	case isNum:
		f := p.float(at, num)
		if math.IsInf(f, 0) {
			p.errs.addf(at, "transform %s: %s is not a finite number", r.Op, num)
		}
		r.Nums = append(r.Nums, f)
	case e.Kind == syntax.NameRef:
		t, ok := tensor.ParseDType(e.Text)
		if !ok {
			p.errs.addf(at, "transform %s: unknown element type %s", r.Op, e.Text)
		}
		r.Type = t
	case r.Op == "permute_rows" && e.Kind == syntax.StringLit && len(r.Args) > 0:
		r.Word = p.transform(e).Name
	default:
		if r.Nums != nil || r.Type != tensor.Invalid || r.Word != "" {
			p.errs.addf(at, "transform %s: operands come before numbers and words", r.Op)
		}
		r.Args = append(r.Args, p.transform(e))
	}
}
