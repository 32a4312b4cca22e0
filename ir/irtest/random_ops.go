package irtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// RandomOps returns a module with a graph of random ops. Every op reads values drawn from
// the earlier ones, in rows of tokens and of out_rows, with odd widths. The graph has
// attention over several states and ops on fixed-size states, inside and outside of a repeat that carries several
// values. A seed always results in the same module. Every module passes ir.Verify, and its
// results do not depend on how a sequence is divided into steps. To add a kind of op, add a
// function to step.
func RandomOps(seed uint64) *ir.Module { return mustParse(RandomOpsText(seed)) }

// RandomOpsText returns the text of the module of RandomOps.
func RandomOpsText(seed uint64) string {
	d := &dag{rng: rand.New(rand.NewPCG(seed, 0x6f7073)), states: map[string]bool{}}
	text := d.module()
	if seed%2 == 0 {
		return text
	}
	m := mustParse(text)
	WriteIndices(m, seed)
	return m.String()
}

// A dag is a graph under construction.
type dag struct {
	rng         *rand.Rand
	decls, body strings.Builder
	values      []*node // values that the next op may read
	states      map[string]bool
	blocks      string // element type of some matrices
	widths      []int
	lo, hi      int // range of the current repeat; hi 0: outside a repeat
	fresh       int
}

// A node is a value of f32 elements.
type node struct {
	name string
	cols int
	rows string  // name of the row dim
	size float64 // approximate magnitude of its elements
	used bool
}

func (d *dag) coin() bool                     { return d.rng.IntN(2) == 0 }
func (d *dag) upTo(n int) int                 { return 1 + d.rng.IntN(n) }
func draw[T any](d *dag, of ...T) T           { return of[d.rng.IntN(len(of))] }
func (d *dag) line(format string, a ...any)   { fmt.Fprintf(&d.body, format+"\n", a...) }
func (d *dag) name(base string) string        { d.fresh++; return fmt.Sprint(base, d.fresh) }
func (d *dag) add(n *node)                    { d.values = append(d.values, n) }
func (d *dag) width() int                     { return draw(d, d.widths...) }
func like(x *node, cols int, s float64) *node { return &node{cols: cols, rows: x.rows, size: s} }

func (d *dag) module() string {
	d.blocks = draw(d, "q8_b32", "q8_b32t2", "q4_b64", "q4_b32", "q6_b64", "f16", "bf16")
	d.widths = []int{32 * d.upTo(3), 64, 8 * d.upTo(7), d.upTo(50)}
	d.body.WriteString("input %ids : i32[T]\ninput %pos : i32[T]\ninput %out_rows : i32[R]\n")
	d.embed()
	for range 8 + d.rng.IntN(16) {
		d.step()
	}
	yields := d.outputs()
	return fmt.Sprintf("module ops {\n%sgraph decode (T tokens, R out_rows, S sequences) {\n%syield %s\n}\n}\n", d.decls.String(), d.body.String(), strings.Join(yields, ", "))
}

// maxOutputs is the maximum number of values that a graph of RandomOps yields.
const maxOutputs = 8

// outputs returns all unread values and some read ones as outputs. Excess values are
// concatenated in one output.
func (d *dag) outputs() (yields []string) {
	rest := map[string][]string{}
	for _, v := range d.values {
		switch {
		case v.used && d.rng.IntN(12) != 0:
		case len(yields) < maxOutputs-2:
			yields = append(yields, v.name)
		default:
			rest[v.rows] = append(rest[v.rows], v.name)
		}
	}
	for _, rows := range []string{"T", "R"} {
		if len(rest[rows]) > 0 {
			yields = append(yields, d.name("%v"))
			d.line("%s = concat %s", yields[len(yields)-1], strings.Join(rest[rows], ", "))
		}
	}
	d.rng.Shuffle(len(yields), func(i, j int) { yields[i], yields[j] = yields[j], yields[i] })
	return yields
}

// step writes one op of a random kind. The list repeats kinds to weight them. An op that
// finds no suitable values writes nothing.
func (d *dag) step() {
	kinds := []func(){
		d.unary, d.unary, d.unary, d.binary, d.binary, d.binary, d.constants, d.spread, d.norm, d.norm, d.rope, d.sinusoid, d.positionScale, d.reduce, d.embed, d.softmax, d.matmul,
		d.matmul, d.matmul, d.projections, d.gated, d.slices, d.experts, d.split, d.panels, d.concat, d.joinHeads, d.headCols, d.fill, d.mixStreams, d.streamWeights, d.twoStates, d.attention, d.attention, d.recurrent, d.recurrent, d.rows, d.repeat,
	}
	draw(d, kinds...)()
}

// any draws a suitable value, preferring later ones; nil if there is none.
func (d *dag) any(fits func(*node) bool) *node {
	var all []*node
	for _, v := range d.values {
		if fits == nil || fits(v) {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return nil
	}
	v := all[max(d.rng.IntN(len(all)), d.rng.IntN(len(all)))]
	v.used = true
	return v
}

// tame draws a suitable value of magnitude 1, normalized if necessary.
func (d *dag) tame(fits func(*node) bool) *node {
	x := d.any(fits)
	if x == nil || x.size < 2 {
		return x
	}
	return d.op(like(x, x.cols, 1), "rmsnorm %s {eps=0.1}", x.name)
}

// op writes an op with one result, the node.
func (d *dag) op(out *node, format string, args ...any) *node {
	out.name = d.name("%v")
	d.line("%s = %s", out.name, fmt.Sprintf(format, args...))
	d.add(out)
	return out
}

// weight declares a weight and returns its use: an element of an array in a repeat, or an
// element with a written index.
func (d *dag) weight(elem string, shape ...int) string { return d.array(elem, "", "", shape) }

// array is weight with an additional last index, for experts, that is not written.
func (d *dag) array(elem, each, hole string, shape []int) string {
	name, count, index := d.name("w"), "", ""
	switch {
	case d.hi > 0 && d.rng.IntN(6) == 0:
		count, index = fmt.Sprint(2*d.hi), draw(d, "[2*i]", "[2*i+1]", "[i/2]", "[i%2+1]")
	case d.hi > 0 && d.rng.IntN(4) != 0:
		count = fmt.Sprintf("%d..%d", d.rng.IntN(d.lo+1), d.hi+d.rng.IntN(2))
	case d.rng.IntN(4) == 0:
		count, index = "1..4", fmt.Sprintf("[%d]", d.upTo(3))
	}
	stored := name + hole
	if count != "" {
		stored = name + ".{i}" + hole
		if hole != "" {
			stored = name + ".{i}.{j}"
		}
	} else if hole != "" {
		stored = name + ".{i}"
	}
	from := fmt.Sprintf("%q", stored)
	if dt, _ := tensor.ParseDType(elem); dt.IsBlock() {
		from = fmt.Sprintf("quantize(%s, %s)", from, elem)
	}
	if counts := strings.Trim(count+", "+each, ", "); counts != "" {
		count = "[" + counts + "]"
	}
	fmt.Fprintf(&d.decls, "weight @%s%s : %s[%s] from %s\n", name, count, elem, sizes(shape), from)
	return "@" + name + index
}

// maybe returns a list of further arguments, or nothing.
func (d *dag) maybe(arg func() string) string {
	if d.coin() {
		return ", " + arg()
	}
	return ""
}

// number returns one number, or in a repeat possibly one per iteration. No number is 0.
func (d *dag) number() string { return fmt.Sprint(draw(d, 0.5, 1.5, -0.75, 2)) }

// divisor draws a number of equal heads for the columns.
func (d *dag) divisor(cols int) int {
	var all []int
	for n := range min(cols, 8) {
		if cols%(n+1) == 0 {
			all = append(all, n+1)
		}
	}
	return draw(d, all...)
}

func (d *dag) norm() {
	x := d.any(nil)
	heads := d.divisor(x.cols)
	kind, params := draw(d, "rmsnorm", "layernorm", "l2norm"), ""
	w := func() string { return d.weight("f32", x.cols/heads) }
	switch kind {
	case "rmsnorm":
		params = d.maybe(w)
	case "layernorm":
		params = d.maybe(func() string { return w() + d.maybe(w) })
	}
	attrs := ""
	if kind != "l2norm" && params != "" && d.coin() {
		attrs = ", base=1"
	}
	d.op(like(x, x.cols, 1.5), "%s %s%s {eps=0.1, heads=%d%s}", kind, x.name, params, heads, attrs)
}

// rope rotates some columns of each head, with a new table or the last one.
func (d *dag) rope() {
	x := d.any(func(v *node) bool { return v.rows == "T" && v.cols > 1 })
	heads := 1
	if x == nil {
		return
	}
	for heads = d.divisor(x.cols); x.cols/heads < 2; {
		heads = d.divisor(x.cols)
	}
	width := x.cols / heads
	dim := 2 * d.upTo(width/2)
	cs := d.name("%cs")
	d.line("%s = rope_table %%pos {dim=%d, theta=%d, scale=%g}", cs, dim, 10+d.rng.IntN(1000), draw(d, 1, 0.5))
	d.op(like(x, x.cols, x.size), "rope %s, %s {heads=%d, pairs=%s, offset=%d}", x.name, cs, heads, draw(d, "half", "adjacent"), d.rng.IntN(width-dim+1))
}

func (d *dag) sinusoid() {
	dim := 2 * d.upTo(20)
	exponent := draw(d, "dim", "half_minus_1")
	if dim < 4 {
		exponent = "dim"
	}
	d.op(&node{cols: dim, rows: "T", size: 1}, "sinusoid %%pos {dim=%d, offset=%d, layout=%s, exponent=%s}", dim, d.rng.IntN(3), draw(d, "half", "pairs"), exponent)
}

func (d *dag) positionScale() {
	d.op(&node{cols: 1, rows: "T", size: 1}, "position_scale %%pos {floor=%d, by=%g}", 1+d.rng.IntN(6), draw(d, 0.1, 0.5))
}

func (d *dag) reduce() {
	x := d.any(nil)
	d.op(like(x, 1, x.size), "reduce %s {kind=%s}", x.name, draw(d, "mean", "rms, min=0.5", "rms"))
}

// embed looks up token ids or positions.
func (d *dag) embed() {
	cols := d.width()
	d.op(&node{cols: cols, rows: "T", size: 1}, "embed %s, %s", draw(d, "%ids", "%pos"), d.weight(d.matrix(cols), 64, cols))
}

// softmax normalizes a row.
func (d *dag) softmax() {
	x := d.tame(nil)
	d.op(like(x, x.cols, 1), "softmax %s", x.name)
}

// matrix draws the element type of a matrix with the given number of columns.
func (d *dag) matrix(cols int) string {
	if dt, _ := tensor.ParseDType(d.blocks); cols%dt.Block() == 0 && d.rng.IntN(3) != 0 {
		return d.blocks
	}
	return draw(d, "f32", "f16")
}

// rows selects the output rows of a value.
func (d *dag) rows() {
	if d.hi > 0 {
		return
	}
	if x := d.any(func(v *node) bool { return v.rows == "T" }); x != nil {
		d.op(&node{cols: x.cols, rows: "R", size: x.size}, "rows %s, %%out_rows", x.name)
	}
}

// repeat writes a repeat that carries some values.
func (d *dag) repeat() {
	if d.hi > 0 {
		return
	}
	d.lo = d.rng.IntN(3)
	d.hi = d.lo + d.upTo(3)
	before := len(d.values)
	var carried, params []*node
	var head []string
	for range d.upTo(3) {
		x := d.any(nil)
		if slices.Contains(carried, x) {
			continue
		}
		p := &node{name: d.name("%c"), cols: x.cols, rows: x.rows, size: max(x.size, 2)}
		carried, params, head = append(carried, x), append(params, p), append(head, p.name+" = "+x.name)
	}
	var results, yields []string
	for range params {
		results = append(results, d.name("%y"))
	}
	d.line("%s = repeat %d..%d (%s) {", strings.Join(results, ", "), d.lo, d.hi, strings.Join(head, ", "))
	d.values = append(d.values, params...)
	for range 3 + d.rng.IntN(8) {
		d.step()
	}
	for _, p := range params {
		yields = append(yields, d.yielded(p, before))
	}
	d.line("yield %s\n}", strings.Join(yields, ", "))
	d.values, d.lo, d.hi = d.values[:before:before], 0, 0
	for i, r := range results {
		d.add(&node{name: r, cols: params[i].cols, rows: params[i].rows, size: params[i].size})
	}
}

// yielded returns a value for the next iteration's p: a value of the region, any suitable
// value, or one that is converted to the shape.
func (d *dag) yielded(p *node, before int) string {
	fits := func(v *node) bool { return v.cols == p.cols && v.rows == p.rows && v.size <= p.size }
	if d.rng.IntN(6) == 0 {
		return d.any(fits).name
	}
	inner := d.values[before:]
	for i := len(inner) - 1; i >= 0; i-- {
		if v := inner[i]; fits(v) && !v.used && v != p {
			v.used = true
			return v.name
		}
	}
	x := d.tame(func(v *node) bool { return v.rows == p.rows })
	x.used = true
	y := d.op(like(x, p.cols, 1), "matmul %s, %s", x.name, d.weight(d.matrix(x.cols), p.cols, x.cols))
	y.used = true
	return y.name
}
