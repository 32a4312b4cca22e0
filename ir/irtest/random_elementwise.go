package irtest

import (
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// unary writes a random elementwise op of one argument.
func (d *dag) unary() {
	x := d.any(nil)
	var defs []*ir.OpDef
	for _, def := range ops.Table {
		if def.Is(ir.Elementwise) && len(def.Params) == 1 {
			defs = append(defs, def)
		}
	}
	def := draw(d, defs...)
	if x.size > 4 {
		x = d.tame(func(v *node) bool { return v == x })
	}
	var attrs []string
	for _, a := range def.Attrs {
		v := d.number()
		if a.Name == "lo" || a.Name == "hi" {
			v = map[string]string{"lo": "-0.5", "hi": "1.25"}[a.Name]
		}
		attrs = append(attrs, a.Name+"="+v)
	}
	tail := ""
	if len(attrs) > 0 {
		tail = " {" + strings.Join(attrs, ", ") + "}"
	}
	size := 2 * x.size
	if def == ops.Relu2 {
		size = x.size * x.size * 2
	}
	d.op(like(x, x.cols, size), "%s %s%s", def.Name, x.name, tail)
}

// binary writes an elementwise op of two values.
func (d *dag) binary() {
	x := d.any(nil)
	y := d.any(func(v *node) bool { return v.cols == x.cols && v.rows == x.rows })
	if x.size > 4 || y.size > 4 {
		return
	}
	if d.rng.IntN(4) == 0 { // divisors that are not near 0
		y = d.op(like(y, y.cols, 2), "clamp %s {lo=0.5, hi=2}", y.name)
		y.used = true
		d.op(like(x, x.cols, 2*x.size), "div %s, %s", x.name, y.name)
		return
	}
	switch draw(d, "add", "sub", "mul") {
	case "add":
		d.op(like(x, x.cols, x.size+y.size), "add %s, %s", x.name, y.name)
	case "sub":
		d.op(like(x, x.cols, x.size+y.size), "sub %s, %s", x.name, y.name)
	default:
		d.op(like(x, x.cols, x.size*y.size), "mul %s, %s", x.name, y.name)
	}
}

// constants writes an elementwise op with a weight. One-dimensional weights are between 0.5
// and 1.5.
func (d *dag) constants() {
	x := d.any(nil)
	d.op(like(x, x.cols, 2*x.size), "%s %s, %s", draw(d, "add", "sub", "mul", "div"), x.name, d.weight("f32", x.cols))
}

// spread writes an elementwise op with a broadcast second argument: a weight of one
// element, or a value of one column.
func (d *dag) spread() {
	x := d.tame(nil)
	if d.coin() {
		d.op(like(x, x.cols, 2*x.size), "%s %s, %s", draw(d, "add", "sub", "mul", "div"), x.name, d.weight("f32", 1))
		return
	}
	z := d.tame(func(v *node) bool { return v.rows == x.rows })
	y := d.op(like(z, 1, 1.5), "matmul %s, %s", z.name, d.weight("f32", 1, z.cols))
	y.used = true
	d.op(like(x, x.cols, 2*x.size), "%s %s, %s", draw(d, "add", "sub", "mul"), x.name, y.name)
}
