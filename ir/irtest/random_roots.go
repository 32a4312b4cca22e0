package irtest

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// round possibly writes the quantization of x before a matmul. kind is the type of the
// result, or "".
func (d *dag) round(x *node, elem string) (name, kind string) {
	dt, _ := tensor.ParseDType(elem)
	switch {
	case dt.IsBlock() && d.coin():
		kind = fmt.Sprintf("a8_b%d", dt.Block())
	case elem == "bf16" && d.coin():
		kind = "bf16"
	default:
		return x.name, ""
	}
	name = d.name("%a")
	outliers := 0
	if kind != "bf16" && d.rng.IntN(4) == 0 {
		outliers = d.upTo(4)
	}
	d.line("%s = quantize_act %s {type=%s, outliers=%d}", name, x.name, kind, outliers)
	return name, kind
}

// matmul writes a matmul of a value, possibly quantized.
func (d *dag) matmul() {
	x := d.tame(nil)
	elem := d.matrix(x.cols)
	n := d.width()
	w := d.weight(elem, n, x.cols)
	a, _ := d.round(x, elem)
	d.op(like(x, n, 1.5), "matmul %s, %s", a, w)
}

// projections writes several matmuls of one value, which a pass may merge.
func (d *dag) projections() {
	x := d.tame(nil)
	elem := d.matrix(x.cols)
	a, _ := d.round(x, elem)
	for range 2 + d.rng.IntN(2) {
		n := d.width()
		y := d.op(like(x, n, 1.5), "matmul %s, %s", a, d.weight(elem, n, x.cols))
		if d.coin() {
			d.op(like(x, n, 2), "add %s, %s", y.name, d.weight("f32", n))
			y.used = true
		}
	}
}

// gated writes the product of two matmuls, one of them with an activation.
func (d *dag) gated() {
	x := d.tame(nil)
	elem, n := d.matrix(x.cols), d.width()
	a, _ := d.round(x, elem)
	g := d.op(like(x, n, 1.5), "matmul %s, %s", a, d.weight(elem, n, x.cols))
	u := d.op(like(x, n, 1.5), "matmul %s, %s", a, d.weight(elem, n, x.cols))
	s := d.op(like(x, n, 1.5), "%s %s", draw(d, "silu", "gelu", "relu", "tanh"), g.name)
	g.used, u.used, s.used = true, d.rng.IntN(8) != 0, true
	d.op(like(x, n, 2), "mul %s, %s", s.name, u.name)
}

// slices writes a matmul of several column slices.
func (d *dag) slices() {
	x := d.tame(func(v *node) bool { return v.cols > 1 })
	if x == nil {
		return
	}
	n := d.divisor(x.cols)
	elem := d.matrix(x.cols / n)
	cols := draw(d, 16*d.upTo(3), d.width())
	w := d.weight(elem, cols, x.cols/n)
	a := x.name
	if dt, _ := tensor.ParseDType(elem); dt.IsBlock() && d.coin() {
		a = d.name("%a")
		d.line("%s = quantize_act %s {type=a8_b%d}", a, x.name, dt.Block())
	}
	d.op(like(x, n*cols, 1.5), "matmul %s, %s {slices=%d}", a, w, n)
}

// experts routes a value and writes a mixture of experts.
func (d *dag) experts() {
	x := d.tame(nil)
	count := []int{2, 3, 4, 6}[d.rng.IntN(4)]
	logits := d.op(like(x, count, 1.5), "matmul %s, %s", x.name, d.weight("f32", count, x.cols))
	logits.used = true
	topK := min(d.upTo(2), count)
	bias, attrs := d.maybe(func() string { return d.weight("f32", count) }), fmt.Sprintf("top_k=%d", topK)
	switch draw(d, "softmax", "sigmoid", "softmax_topk", "groups", "sparsemixer") {
	case "sigmoid":
		attrs += ", score=sigmoid, norm, scale=1.5"
	case "softmax_topk":
		attrs += ", score=softmax_topk"
		bias = ""
	case "groups":
		if count%2 == 0 {
			attrs += ", groups=2, top_groups=2, norm"
		}
	case "sparsemixer":
		bias, attrs = "", "top_k=2, score=sparsemixer"
	}
	route := d.op(like(x, count, 1), "route %s%s {%s}", logits.name, bias, attrs)
	hidden := d.width()
	elem := d.matrix(x.cols)
	if e := d.matrix(hidden); e != elem {
		elem = "f16" // the same type for all matrices
	}
	a, act := x.name, ""
	if dt, _ := tensor.ParseDType(elem); dt.IsBlock() && hidden%dt.Block() == 0 {
		a, act = d.round(x, elem)
	}
	words := "act=" + draw(d, "silu", "gelu", "gelu_tanh", "relu")
	var args []string
	gated, biased := d.coin(), d.coin()
	d.expertArgs(&args, elem, count, gated, [][]int{{hidden, x.cols}, {hidden, x.cols}, {x.cols, hidden}})
	if gated {
		words += ", gated"
	}
	if biased {
		words += ", biased"
		d.expertArgs(&args, "f32", count, gated, [][]int{{hidden}, {hidden}, {x.cols}})
	} else if d.coin() {
		words += ", scale_input"
	}
	if act != "" {
		words += ", act_type=" + act
	}
	route.used = true
	d.op(like(x, x.cols, 2), "experts %s, %s, %s {%s}", a, route.name, strings.Join(args, ", "), words)
}

// expertArgs declares the weights of all experts: gate, up and down, or their biases.
func (d *dag) expertArgs(args *[]string, elem string, count int, gated bool, shapes [][]int) {
	for i, shape := range shapes {
		if i != 1 || gated {
			*args = append(*args, d.array(elem, fmt.Sprint(count), ".{i}", shape))
		}
	}
}

// split splits a value by columns.
func (d *dag) split() {
	x := d.any(func(v *node) bool { return v.cols > 2 })
	if x == nil {
		return
	}
	var cuts, names []string
	left := x.cols
	for left > 0 && len(cuts) < 3 {
		n := d.upTo(left)
		if d.coin() && left > 16 {
			n = 16 * d.upTo(left/16)
		}
		if len(cuts) == 2 {
			n = left
		}
		left -= n
		name := d.name("%p")
		cuts, names = append(cuts, fmt.Sprint(n)), append(names, name)
		defer d.add(&node{name: name, cols: n, rows: x.rows, size: x.size})
	}
	d.line("%s = split %s {sizes=[%s]}", strings.Join(names, ", "), x.name, strings.Join(cuts, ", "))
}

// panels splits the interleaved parts of a matmul's result.
func (d *dag) panels() {
	x := d.tame(nil)
	n, turn := 2+d.rng.IntN(2), draw(d, 16, 16, 8, 5)
	each := draw(d, 16*d.upTo(3), d.upTo(40))
	whole := n * ((each + turn - 1) / turn * turn)
	elem := d.matrix(x.cols)
	y := d.op(like(x, whole, 1.5), "matmul %s, %s", x.name, d.weight(elem, whole, x.cols))
	y.used = d.rng.IntN(4) != 0
	var names, cuts []string
	for range n {
		name := d.name("%p")
		names, cuts = append(names, name), append(cuts, fmt.Sprint(each))
		defer d.add(&node{name: name, cols: each, rows: x.rows, size: 1.5})
	}
	d.line("%s = split %s {sizes=[%s], panel=%d}", strings.Join(names, ", "), y.name, strings.Join(cuts, ", "), turn)
}

func (d *dag) concat() {
	x := d.any(nil)
	args, cols, size := []string{x.name}, x.cols, x.size
	for range d.upTo(3) {
		y := d.any(func(v *node) bool { return v.rows == x.rows })
		args, cols, size = append(args, y.name), cols+y.cols, max(size, y.size)
	}
	if cols < 400 {
		d.op(like(x, cols, size), "concat %s", strings.Join(args, ", "))
	}
}

func (d *dag) joinHeads() {
	x := d.any(nil)
	heads := d.divisor(x.cols)
	bHeads := draw(d, 1, heads)
	y := d.any(func(v *node) bool { return v.rows == x.rows && v.cols%bHeads == 0 })
	if y != nil && x.cols+y.cols*heads < 400 {
		d.op(like(x, x.cols+y.cols/bHeads*heads, max(x.size, y.size)), "join_heads %s, %s {heads=%d, b_heads=%d}", x.name, y.name, heads, bHeads)
	}
}

func (d *dag) headCols() {
	x := d.any(nil)
	heads := d.divisor(x.cols)
	width := x.cols / heads
	lo := d.rng.IntN(width)
	hi := lo + d.upTo(width-lo)
	d.op(like(x, heads*(hi-lo), x.size), "head_cols %s {heads=%d, lo=%d, hi=%d}", x.name, heads, lo, hi)
}

func (d *dag) fill() {
	x, cols := d.any(nil), d.upTo(40)
	d.op(like(x, cols, 1.5), "fill %s {cols=%d, value=%s}", x.name, cols, draw(d, "0", "-1.5", "1"))
}

// attention appends to a new KV cache and reads it once or twice.
func (d *dag) attention() {
	kvHeads, dim, vdim := d.upTo(3), draw(d, 8, 12, 16, 20, 32), draw(d, 8, 16, 16, 20, 32)
	elem := draw(d, "f32", "f16", "bf16")
	if dim == 32 && vdim == 32 && d.coin() {
		elem = "q8_b32t2"
	}
	x := d.tame(func(v *node) bool { return v.rows == "T" })
	if x == nil {
		return
	}
	k, v := d.fitting(x, kvHeads*dim), d.fitting(x, kvHeads*vdim)
	kv := d.state(fmt.Sprintf("rows {k: %s[%d, %d], v: %s[%d, %d]} paged 64", elem, kvHeads, dim, elem, kvHeads, vdim))
	d.line("kv_append %s, %s, %s", kv, k.name, v.name)
	for range d.upTo(2) {
		heads := kvHeads * d.upTo(3)
		y := d.tame(func(v *node) bool { return v.rows == "T" })
		q := d.fitting(y, heads*dim)
		d.op(&node{cols: heads * vdim, rows: "T", size: 2}, "attention %s, %s%s", q.name, kv, d.attentionTail(heads, kvHeads))
	}
}

// state declares a state and returns its use: an element of an array in a repeat, or
// perhaps one with a written index.
func (d *dag) state(text string) string {
	name, count, index := d.name("s"), "", ""
	switch {
	case d.hi > 0:
		count = fmt.Sprintf("[%d..%d]", d.rng.IntN(d.lo+1), d.hi+d.rng.IntN(2))
	case d.coin():
		count, index = "[0..3]", fmt.Sprintf("[%d]", d.rng.IntN(3))
	}
	fmt.Fprintf(&d.decls, "state %%%s%s : %s\n", name, count, text)
	return "%" + name + index
}

// fitting returns a value with the given number of columns: an existing one, or a matmul of x.
func (d *dag) fitting(x *node, cols int) *node {
	fits := func(v *node) bool { return v.rows == x.rows && v.cols == cols && v.size <= 2 }
	if y := d.any(fits); y != nil && d.coin() {
		return y
	}
	y := d.op(like(x, cols, 1.5), "matmul %s, %s", x.name, d.weight(d.matrix(x.cols), cols, x.cols))
	y.used = true
	return y
}

// attentionTail returns the further arguments and attributes of attention.
func (d *dag) attentionTail(heads, kvHeads int) string {
	args, attrs := "", fmt.Sprintf("heads=%d, kv_heads=%d, causal", heads, kvHeads)
	if d.rng.IntN(3) == 0 {
		args += ", " + d.weight("f32", 8, heads)
		attrs += ", rel_buckets=8, rel_max=6"
	} else if d.rng.IntN(3) == 0 {
		slopes := make([]string, heads)
		for i := range slopes {
			slopes[i] = fmt.Sprint(1 / float64(i+2))
		}
		attrs += ", alibi=[" + strings.Join(slopes, ", ") + "]"
	}
	if d.rng.IntN(3) == 0 {
		args += ", " + d.weight("f32", heads)
		attrs += ", sinks"
	}
	attrs += ", " + draw(d, "window=", "window=", "chunk=") + d.perLayer("0", "2", "3", "5")
	if d.coin() {
		attrs += ", softcap=3"
	}
	if d.coin() {
		attrs += ", scale=0.3"
	}
	return args + " {" + attrs + "}"
}
