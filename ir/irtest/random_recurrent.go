package irtest

import (
	"fmt"
	"strings"
)

// recurrent writes an op on a new fixed-size state.
func (d *dag) recurrent() {
	x := d.tame(func(v *node) bool { return v.rows == "T" })
	if x == nil {
		return
	}
	draw(d, d.shortConv, d.tokenShift, d.pool, d.lru, d.scan, d.linear, d.linear, d.linear)(x)
}

// fixed declares a fixed-size state and returns its use.
func (d *dag) fixed(field string) string { return d.state("fixed {" + field + "}") }

// below returns a value between 0 and by, which may be negative.
func (d *dag) below(x *node, cols int, by float64) string {
	s := d.op(like(x, cols, 1), "sigmoid %s", d.fitting(x, cols).name)
	s.used = true
	return d.scaled(s, by)
}

func (d *dag) scaled(x *node, by float64) string {
	y := d.op(like(x, x.cols, x.size), "scale %s {by=%g}", x.name, by)
	y.used = true
	return y.name
}

// unit returns heads of norm 1.
func (d *dag) unit(x *node, heads, dim int) *node {
	y := d.op(like(x, heads*dim, 1), "l2norm %s {heads=%d}", d.fitting(x, heads*dim).name, heads)
	y.used = true
	return y
}

func (d *dag) shortConv(x *node) {
	taps := 2 + d.rng.IntN(4)
	w := d.weight("f32", taps, x.cols)
	d.op(like(x, x.cols, 4), "short_conv %s, %s, %s%s", d.fixed(fmt.Sprintf("x: f32[%d, %d]", taps-1, x.cols)), x.name, w, d.maybe(func() string { return d.weight("f32", x.cols) }))
}

func (d *dag) tokenShift(x *node) {
	d.op(like(x, x.cols, 1), "token_shift %s, %s", d.fixed(fmt.Sprintf("x: f32[%d]", x.cols)), x.name)
}

func (d *dag) pool(x *node) {
	cols, every := d.upTo(40), d.upTo(5)
	in, size, attrs := cols, 4, fmt.Sprintf("every=%d", every)
	if d.coin() {
		in, size, attrs = 2*cols, 10, attrs+", overlap"
	}
	v, gate := d.fitting(x, in), d.fitting(x, in)
	d.op(like(x, cols, 2), "pool_rows %s, %s, %s, %s {%s}", d.fixed(fmt.Sprintf("s: f32[%d, %d]", size, cols)), v.name, gate.name, d.weight("f32", every, in), attrs)
}

func (d *dag) lru(x *node) {
	d.op(like(x, x.cols, 2), "rg_lru %s, %s, %s", d.fixed(fmt.Sprintf("h: f32[%d]", x.cols)), x.name, d.below(x, x.cols, -2))
}

func (d *dag) scan(x *node) {
	n := d.upTo(20)
	b, c := d.fitting(x, n), d.fitting(x, n)
	d.op(like(x, x.cols, 4), "selective_scan %s, %s, %s, %s, %s, %s", d.fixed(fmt.Sprintf("h: f32[%d, %d]", x.cols, n)), x.name, d.below(x, x.cols, 0.2), b.name, c.name, d.weight("f32", x.cols, n))
}

func (d *dag) linear(x *node) {
	keyHeads := d.upTo(2)
	heads, dim, vdim := keyHeads*d.upTo(3), draw(d, 4, 8, 12, 16, 20), draw(d, 5, 8, 16, 24)
	state := d.fixed(fmt.Sprintf("s: f32[%d, %d, %d]", heads, dim, vdim))
	q, k, v := d.fitting(x, keyHeads*dim), d.unit(x, keyHeads, dim), d.fitting(x, heads*vdim)
	args := []string{state, q.name, k.name, v.name}
	attrs := []string{fmt.Sprintf("heads=%d", heads)}
	if keyHeads != heads || d.coin() {
		attrs = append(attrs, fmt.Sprintf("key_heads=%d", keyHeads))
	}
	decay, delta := draw(d, "none", "fixed", "head", "channel"), draw(d, "none", "rule", "vectors")
	switch decay {
	case "fixed":
		slopes := make([]string, heads)
		for i := range slopes {
			slopes[i] = fmt.Sprint(-1 / float64(i+2))
		}
		attrs = append(attrs, "slopes=["+strings.Join(slopes, ", ")+"]", "slope_scale="+d.perLayer("0.5", "1.5", "0.25"))
	case "head":
		args = append(args, d.below(x, heads, -3))
	case "channel":
		args = append(args, d.below(x, heads*dim, -3))
	}
	if d.coin() {
		args, attrs = append(args, d.below(x, heads, 1)), append(attrs, "beta")
	}
	if delta == "vectors" {
		args = append(args, d.scaled(d.unit(x, heads, dim), -0.5), d.scaled(d.unit(x, heads, dim), 0.5))
	}
	if d.coin() {
		args, attrs = append(args, d.weight("f32", heads)), append(attrs, "skip")
	}
	attrs = append(attrs, "decay="+decay, "delta="+delta, "scale=0.5")
	d.op(&node{cols: heads * vdim, rows: "T", size: 8}, "linear_recurrence %s {%s}", strings.Join(args, ", "), strings.Join(attrs, ", "))
}

// perLayer draws one of some numbers, or in a repeat possibly one per iteration.
func (d *dag) perLayer(of ...string) string {
	if d.hi == 0 || d.coin() {
		return draw(d, of...)
	}
	var list []string
	for range d.hi - d.lo {
		list = append(list, draw(d, of...))
	}
	return "[" + strings.Join(list, ", ") + "]"
}
