package irtest

import "fmt"

func (d *dag) mixStreams() {
	x := d.tame(nil)
	n := d.divisor(x.cols)
	w := d.fitting(x, n*d.upTo(4))
	d.op(like(x, x.cols/n*(w.cols/n), 4), "mix_streams %s, %s {streams=%d}", x.name, w.name, n)
}

func (d *dag) streamWeights() {
	x, n, scales := d.tame(nil), d.upTo(4), 1
	cols := n
	if d.coin() {
		cols, scales = n*(n+2), 3
	}
	y := d.fitting(x, cols)
	d.op(like(x, cols, 1), "stream_weights %s, %s, %s {streams=%d, iterations=%d, eps=0.001}", y.name, d.weight("f32", scales), d.weight("f32", cols), n, d.upTo(4))
}

// twoStates joins attention to the rows of a window and to every few rows of another state.
func (d *dag) twoStates() {
	x := d.tame(func(v *node) bool { return v.rows == "T" })
	if x == nil {
		return
	}
	heads, dim := d.upTo(3), draw(d, 8, 16, 20)
	q, k, v := d.fitting(x, heads*dim), d.fitting(x, dim), d.fitting(x, dim)
	var parts []string
	for i, attrs := range []string{fmt.Sprintf("window=%d", d.upTo(5)), fmt.Sprintf("every=%d", d.upTo(4))} {
		kv := d.state(fmt.Sprintf("rows {k: %s[1, %d], v: f32[1, %d]} paged 64", "f32", dim, dim))
		d.line("kv_append %s, %s, %s", kv, []*node{k, v}[i].name, v.name)
		parts = append(parts, d.name("%a"))
		d.line("%s = attention %s, %s {heads=%d, kv_heads=1, causal, lse, %s}", parts[i], q.name, kv, heads, attrs)
	}
	d.op(like(x, heads*dim, 2), "merge_attention %s, %s%s {heads=%d}", parts[0], parts[1], d.maybe(func() string { return d.weight("f32", heads) }), heads)
}
