package templates

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A moeCase is a layer of experts and rows that go to them.
type moeCase struct {
	r                   *rand.Rand
	dt                  tensor.DType
	act                 string
	experts, topK, d, f int
	rows                int
	gated, biased       bool
	x, route            []float32 // [rows][d16], [rows][experts16]
	w                   [3][]byte // gate, up, down of all experts
	value               [3][]float64
	bias                [3][]float32
	choice              [3][]byte
}

func (c *moeCase) String() string {
	return fmt.Sprintf("%s/%s/%d of %d/%dx%d/%d rows/gated=%v/biased=%v", c.dt, c.act, c.topK, c.experts, c.f, c.d, c.rows, c.gated, c.biased)
}

func round16(n int) int { return (n + 15) &^ 15 }

func alignedFloats(n int) []float32 { return floats(aligned(4 * n)) }

func randomMoE(r *rand.Rand, dt tensor.DType, act string) *moeCase {
	c := &moeCase{r: r, dt: dt, act: act, experts: 1 + r.IntN(12), d: pick(r, 64, 96, 160), rows: pick(r, 1, 9, 33), gated: r.IntN(3) > 0, biased: r.IntN(2) == 0}
	c.gated = c.gated || act == "swiglu_oai"
	c.topK = 1 + r.IntN(min(c.experts, 4))
	c.f = 64 * (1 + r.IntN(3)) // whole blocks, as the op demands of rounded activations
	switch Act(dt) {
	case "f32":
		c.f, c.d = pick(r, 48, 100, 130), pick(r, 64, 100)
	case "a8_b16":
		c.f = 16 * (1 + r.IntN(9))
	case "a8_b32":
		c.f = 32 * (1 + r.IntN(5))
	}
	for i := range c.w {
		c.randomExperts(i)
	}
	d16, e16 := round16(c.d), round16(c.experts)
	c.x, c.route = alignedFloats(c.rows*d16), alignedFloats(c.rows*e16)
	copy(c.x, normal(r, len(c.x), 1))
	for t := range c.rows {
		for _, e := range r.Perm(c.experts)[:c.topK] {
			c.route[t*e16+e] = r.Float32()
		}
	}
	return c
}

// randomExperts draws matrix i of every expert.
func (c *moeCase) randomExperts(i int) {
	n, k := c.f, c.d
	if i == 2 {
		n, k = c.d, c.f
	}
	c.choice[i] = make([]byte, 513)
	if i == 1 && !c.gated {
		return
	}
	var packed []byte
	for range c.experts {
		m := randomMatrix(c.r, c.dt, round16(n), k)
		packed = append(packed, m.packed...)
		c.value[i] = append(c.value[i], m.value[:n*k]...)
	}
	c.w[i] = append(aligned(len(packed))[:0], packed...)
	if c.biased {
		c.bias[i] = normal(c.r, c.experts*round16(n), 1)
	}
}

// run computes the rows with some threads and a random table of kernels.
func (c *moeCase) run(t *testing.T, m *moeLib, from, to, threads int) []float32 {
	t.Helper()
	d16, e16 := round16(c.d), round16(c.experts)
	out := alignedFloats((to - from) * (d16 + 16))
	j := &cExperts{
		pool: m.pools[threads], rows: int32(to - from), experts: int32(c.experts), topK: int32(c.topK), d: int32(c.d), f: int32(c.f), limit: 3, alpha: 1.25,
		x: &c.x[from*d16], route: &c.route[from*e16], out: &out[0], ldx: int64(d16), ldr: int64(e16), ldo: int64(d16 + 16),
	}
	for i, a := range actKinds {
		if a == Act(c.dt) {
			j.in, j.hidden = int32(i), int32(i)
		}
	}
	for i, a := range expertActs {
		if a == c.act {
			j.act = int32(i)
		}
	}
	for i, k := range m.impls[c.dt] {
		j.impls[i] = cImpl{symbol(t, m.lib, k.Symbol(c.dt)), int32(k.Tile)}
	}
	for i := range c.w {
		for n := range c.choice[i] {
			c.choice[i][n] = byte(c.r.IntN(len(m.impls[c.dt])))
		}
		j.choice[i], j.bytes[i] = &c.choice[i][0], int64(len(c.w[i])/c.experts)
		if len(c.w[i]) > 0 {
			j.w[i] = &c.w[i][0]
		}
		if len(c.bias[i]) > 0 {
			j.bias[i] = &c.bias[i][0]
		}
	}
	purego.SyscallN(symbol(t, m.lib, "shim_experts"), uintptr(unsafe.Pointer(j)))
	runtime.KeepAlive(j)
	if j.bad != 0 {
		t.Fatal("something is written behind the scratch")
	}
	var rows []float32
	for r := range to - from {
		rows = append(rows, out[r*(d16+16):][:c.d]...)
		for i, v := range out[r*(d16+16)+d16:][:16] {
			if v != 0 {
				t.Fatalf("row %d: something is written %d behind it", r, i)
			}
		}
	}
	return rows
}

// reference is the interpreter's result on what the rows are after rounding.
func (c *moeCase) reference(t *testing.T) []float64 {
	t.Helper()
	d16, e16 := round16(c.d), round16(c.experts)
	var x, route []float32
	for i := range c.rows {
		x = append(x, c.x[i*d16:][:c.d]...)
		route = append(route, c.route[i*e16:][:c.experts]...)
	}
	_, xs := packRows(Act(c.dt), x, c.rows, c.d, 1)
	a := attrsOf("act", c.act, "gated", c.gated, "biased", c.biased, "limit", 3.0, "alpha", 1.25)
	if dt, _ := tensor.ParseDType(Act(c.dt)); dt != tensor.F32 {
		a.Set("act_type", dt)
	}
	in := []*tensor.Tensor{ten(xs, c.rows, c.d), ten(wide(route), c.rows, c.experts)}
	shapes := [3][]int{{c.experts, c.f, c.d}, {c.experts, c.f, c.d}, {c.experts, c.d, c.f}}
	for i, v := range c.value {
		if v != nil {
			in = append(in, ten(v, shapes[i]...))
		}
	}
	for i, b := range c.bias {
		if b == nil {
			continue
		}
		var v []float64
		for e := range c.experts {
			v = append(v, wide(b[e*round16(shapes[i][1]):][:shapes[i][1]])...)
		}
		in = append(in, ten(v, c.experts, shapes[i][1]))
	}
	return evalOp(t, ops.Experts, a, in...)
}

// check compares all rows with the interpreter, and other numbers of rows,
// threads and kernels bit by bit with them.
func (c *moeCase) check(t *testing.T, m *moeLib) {
	got := c.run(t, m, 0, c.rows, 1)
	want := c.reference(t)
	var size float64
	for _, w := range want {
		size = max(size, math.Abs(w))
	}
	if size == 0 {
		t.Fatal("the case is empty")
	}
	bound := 3e-6 * size
	if Act(c.dt) != "f32" {
		bound = 4e-3 * size // a hidden number may be rounded to a neighboring code
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= bound) {
			t.Fatalf("row %d, column %d is %g, want %g within %g", i/c.d, i%c.d, got[i], w, bound)
		}
	}
	for threads := 1; threads < len(m.pools); threads++ {
		for _, n := range []int{1, 5, c.rows} {
			n = min(n, c.rows)
			from := c.r.IntN(c.rows - n + 1)
			if part := c.run(t, m, from, from+n, threads); !sameBits(part, got[from*c.d:(from+n)*c.d]) {
				t.Fatalf("rows %d to %d alone with %d threads have other bits than all rows with one", from, from+n, threads)
			}
		}
	}
}
