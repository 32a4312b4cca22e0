package ir

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/ir/tensor"
)

// typeColumn is the column of the colon in a declaration. It is fixed, so that one
// long name does not move the colons of other lines.
const typeColumn = 25

// Fprint writes the module in its canonical form: two spaces of indentation per
// level, attributes in the order of the op's definition without defaults, numbers in
// their shortest form, and all types.
func (m *Module) Fprint(w io.Writer) error {
	p := &printer{}
	p.module(m)
	_, err := w.Write(p.Bytes())
	return err
}

// String returns the module's canonical text.
func (m *Module) String() string {
	p := &printer{}
	p.module(m)
	return p.Buffer.String()
}

// String returns the op's canonical text, including its body.
func (o *Op) String() string {
	p := &printer{}
	p.op(o)
	return strings.TrimSuffix(p.Buffer.String(), "\n")
}

type printer struct {
	bytes.Buffer
	indent int
}

func (p *printer) linef(format string, args ...any) {
	for range p.indent {
		p.WriteString("  ")
	}
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

// decl writes a declaration with the colon in the fixed column.
func (p *printer) decl(head, tail string) {
	p.linef("%-*s : %s", typeColumn-1-2*p.indent, head, tail)
}

func (p *printer) module(m *Module) {
	p.linef("module %s {", syntax.QuoteName(m.Name))
	p.indent++
	for _, w := range m.Weights {
		tail := w.Type.String()
		if w.Transform != nil {
			tail += " from " + w.Transform.String()
		}
		p.decl("weight "+w.String()+countText(w.Count), tail)
	}
	for _, s := range m.States {
		p.decl("state "+s.String()+countText(s.Count), s.State.String())
	}
	for _, g := range m.Graphs {
		p.graph(g)
	}
	p.indent--
	p.linef("}")
}

func countText(rs []Range) string {
	var parts []string
	for _, r := range rs {
		if r.Lo == 0 {
			parts = append(parts, strconv.Itoa(r.Hi))
		} else {
			parts = append(parts, fmt.Sprintf("%d..%d", r.Lo, r.Hi))
		}
	}
	if parts == nil {
		return ""
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (p *printer) graph(g *Graph) {
	var dims []string
	for _, d := range g.Dims {
		dims = append(dims, d.Name+" "+d.Role)
	}
	p.linef("graph %s (%s) {", g.Name, strings.Join(dims, ", "))
	p.indent++
	for _, v := range g.Inputs {
		p.decl("input "+v.String(), v.Type.String())
	}
	p.indent--
	p.block(g.Body)
	p.linef("}")
}

func (p *printer) block(b *Block) {
	p.indent++
	for _, o := range b.Ops {
		p.op(o)
	}
	if len(b.Yield) > 0 {
		p.linef("yield %s", strings.Join(valueNames(b.Yield), ", "))
	}
	p.indent--
}

func (p *printer) op(o *Op) {
	var types []string
	for _, r := range o.Results {
		types = append(types, r.Type.String())
	}
	head, tail := "", ""
	if len(types) > 0 {
		head = strings.Join(valueNames(o.Results), ", ") + " = "
		tail = " : " + strings.Join(types, ", ")
	}
	for _, n := range o.Annotations {
		tail += " " + n.String()
	}
	if o.Body == nil {
		p.linef("%s%s%s%s%s", head, o.Def.Name, argText(o.Args), o.attrText(), tail)
		return
	}
	p.linef("%s%s {", head, o.regionText())
	p.block(o.Body)
	p.linef("}%s", tail)
}

func argText(args []Arg) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, a.String())
	}
	if parts == nil {
		return ""
	}
	return " " + strings.Join(parts, ", ")
}

func (o *Op) regionText() string {
	switch o.Def {
	case Repeat:
		var carry []string
		for i, v := range o.Body.Params {
			carry = append(carry, v.String()+" = "+o.Args[i].String())
		}
		return fmt.Sprintf("repeat %d..%d (%s)", o.Int("lo"), o.Int("hi"), strings.Join(carry, ", "))
	case Par:
		return fmt.Sprintf("par %d", o.Int("ranks"))
	}
	return o.Def.Name
}

func (o *Op) attrText() string {
	var parts []string
	for _, a := range o.Attrs.normalize(o.Def) {
		if b, ok := a.Val.(bool); ok && b {
			parts = append(parts, a.Name)
		} else {
			parts = append(parts, a.Name+"="+attrValText(a.Val))
		}
	}
	if parts == nil {
		return ""
	}
	return " {" + strings.Join(parts, ", ") + "}"
}

func attrValText(val any) string {
	switch v := val.(type) {
	case float64:
		return floatText(v)
	case []int:
		return intList(v)
	case []float64:
		var parts []string
		for _, f := range v {
			parts = append(parts, floatText(f))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case tensor.DType:
		return v.String()
	}
	return fmt.Sprint(val)
}

func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// plainAnnotationWord matches words of annotations that need no quotes.
var plainAnnotationWord = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*|[0-9]+)$`)

// String returns the annotation in IR syntax.
func (n Annotation) String() string {
	var parts []string
	for _, a := range n.Args {
		val := a.Val
		if !plainAnnotationWord.MatchString(val) {
			val = strconv.Quote(val)
		}
		if a.Of != "" {
			val = fmt.Sprintf("%s>=%d: %s", a.Of, a.From, val)
		}
		parts = append(parts, val)
	}
	if parts == nil {
		return "!" + n.Name
	}
	return "!" + n.Name + "(" + strings.Join(parts, ", ") + ")"
}
