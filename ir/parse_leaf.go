package ir

import (
	"math"
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/iflowc/iflowc/ir/tensor"
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

func (p *parser) counts(gs []*gCount) []Range {
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
func (p *parser) typ(g *gType) Type {
	elem, ok := tensor.ParseDType(g.Elem)
	if !ok || elem == tensor.Invalid {
		p.errs.addf(pos(g.Pos), "unknown element type %s", g.Elem)
		elem = tensor.Invalid
	}
	t := Type{Elem: elem}
	for _, s := range g.Sizes {
		t.Shape = append(t.Shape, p.size(pos(g.Pos), s.Text))
	}
	return t
}

func (p *parser) size(at Pos, text string) Size {
	if c := text[0]; c >= '0' && c <= '9' || c == '-' || c == '+' {
		n := p.int(at, text)
		if n <= 0 {
			p.errs.addf(at, "size %s is not positive", text)
		}
		return N(n)
	}
	var names []string
	if p.graph != nil {
		for _, d := range p.graph.Dims {
			if d.Name == text {
				return Size{Dim: d}
			}
			names = append(names, d.Name)
		}
	}
	p.errs.addf(at, "unknown size %s, expected a number or one of the graph's dims [%s]", text, strings.Join(names, ", "))
	return N(1)
}

func (p *parser) attr(o *Op, g *gAttr) {
	at := pos(g.Pos)
	d := o.Def.Attr(g.Name)
	if d == nil {
		if p.ops.Lookup(o.Def.Name) != nil {
			p.errs.addf(at, "op %s: unknown attribute %s%s", o.Def.Name, g.Name, didYouMean(g.Name, o.Def.attrNames()))
		}
		return
	}
	if o.Has(g.Name) {
		p.errs.addf(at, "op %s: duplicate attribute %s", o.Def.Name, g.Name)
		return
	}
	val := p.attrVal(d, g, at)
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

// attrVal converts a value to the kind of its declaration; nil if the value is of
// another kind.
func (p *parser) attrVal(d *AttrDef, g *gAttr, at Pos) any {
	v := g.Val
	if v == nil {
		if d.Kind == BoolAttr {
			return true
		}
		return nil
	}
	switch d.Kind {
	case IntAttr, PerLayerInt:
		if v.Num != "" {
			return p.int(at, v.Num)
		}
	case FloatAttr, PerLayerFloat:
		if v.Num != "" {
			return p.float(at, v.Num)
		}
	case WordAttr:
		if v.Word != "" {
			return v.Word
		}
	case DTypeAttr:
		if t, ok := tensor.ParseDType(v.Word); ok {
			return t
		}
	case BoolAttr:
		if v.Word == "true" || v.Word == "false" {
			return v.Word == "true"
		}
	}
	if !v.End {
		return nil
	}
	switch d.Kind {
	case IntsAttr, PerLayerInt:
		list := make([]int, 0, len(v.List))
		for _, s := range v.List {
			list = append(list, p.int(at, s.Text))
		}
		return list
	case FloatsAttr, PerLayerFloat:
		list := make([]float64, 0, len(v.List))
		for _, s := range v.List {
			list = append(list, p.float(at, s.Text))
		}
		return list
	}
	return nil
}

func (p *parser) annotation(g *gAnnotation) Annotation {
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

func (p *parser) transform(g *gTransform) *tensor.Transform {
	switch {
	case g.Weight != "":
		return &tensor.Transform{Op: "weight", Name: g.Weight[1:]}
	case g.Source != "":
		r := tensor.Source(p.unquote(g.Pos, g.Source))
		if err := checkTransform(r); err != nil {
			p.errs.addf(pos(g.Pos), "%v", err)
		}
		return r
	}
	r := &tensor.Transform{Op: g.Name}
	for _, a := range g.Args {
		p.transformArg(r, a)
	}
	if err := checkTransform(r); err != nil {
		p.errs.addf(pos(g.Pos), "%v", err)
	}
	return r
}

// transformArg assigns an argument of a transform by position: operands first, then
// numbers, then an element type, then a word, as Transform.String prints them.
func (p *parser) transformArg(r *tensor.Transform, g *gRecArg) {
	at := pos(g.Pos)
	switch {
	case g.Num != "":
		f := p.float(at, g.Num)
		if math.IsInf(f, 0) {
			p.errs.addf(at, "transform %s: %s is not a finite number", r.Op, g.Num)
		}
		r.Nums = append(r.Nums, f)
	case g.Transform.Name != "" && !g.Transform.Call:
		t, ok := tensor.ParseDType(g.Transform.Name)
		if !ok {
			p.errs.addf(at, "transform %s: unknown element type %s", r.Op, g.Transform.Name)
		}
		r.Type = t
	case r.Op == "permute_rows" && g.Transform.Source != "" && len(r.Args) > 0:
		r.Word = p.transform(g.Transform).Name
	default:
		if r.Nums != nil || r.Type != tensor.Invalid || r.Word != "" {
			p.errs.addf(at, "transform %s: operands come before numbers and words", r.Op)
		}
		r.Args = append(r.Args, p.transform(g.Transform))
	}
}
