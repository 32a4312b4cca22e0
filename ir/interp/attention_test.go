package interp_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

// attend is an independent implementation of attention over the rows of one sequence: a
// single pass with a running maximum, per head.
func attend(q, k, v *tensor.Tensor, heads, kvHeads int, scale, softcap float64, see func(t, u int) bool, bias func(h, t, u int) float64, sink []float64) []float64 {
	dim, vdim := q.Shape[1]/heads, v.Shape[1]/kvHeads
	var out []float64
	for t := range q.Shape[0] {
		for h := range heads {
			top, sum, acc := math.Inf(-1), 0.0, make([]float64, vdim)
			if sink != nil {
				top, sum = sink[h], 1
			}
			for u := range k.Shape[0] {
				if !see(t, u) {
					continue
				}
				s := 0.0
				for i := range dim {
					s += q.At(t, h*dim+i) * k.At(u, h*kvHeads/heads*dim+i) * scale
				}
				if softcap > 0 {
					s = softcap * math.Tanh(s/softcap)
				}
				s += bias(h, t, u)
				old := top
				top = math.Max(top, s)
				shrink, weight := math.Exp(old-top), math.Exp(s-top)
				sum = sum*shrink + weight
				for c := range acc {
					acc[c] = acc[c]*shrink + weight*v.At(u, h*kvHeads/heads*vdim+c)
				}
			}
			for _, x := range acc {
				out = append(out, x/sum)
			}
		}
	}
	return out
}

func TestAttention(t *testing.T) {
	t.Parallel()
	const heads, kvHeads, dim, vdim, n = 4, 2, 6, 5, 7
	q, k, v := noise(1, n, heads*dim), noise(2, n, kvHeads*dim), noise(3, n, kvHeads*vdim)
	none := func(h, t, u int) float64 { return 0 }
	causal := func(t, u int) bool { return u <= t }
	slope := []float64{0.5, 0.25, 1, 2}
	table := noise(9, 6, heads)
	for _, c := range []struct {
		attrs          string
		scale, softcap float64
		see            func(t, u int) bool
		bias           func(h, t, u int) float64
		sinks, rel     bool
	}{
		{"causal", 1 / math.Sqrt(dim), 0, causal, none, false, false},
		{"scale=0.7", 0.7, 0, func(t, u int) bool { return true }, none, false, false},
		{"window=2", 1 / math.Sqrt(dim), 0, func(t, u int) bool { return u >= t-2 && u <= t+2 }, none, false, false},
		{"causal, window=3", 1 / math.Sqrt(dim), 0, func(t, u int) bool { return u <= t && u > t-3 }, none, false, false},
		{"causal, scale=2, softcap=1.5", 2, 1.5, causal, none, false, false},
		{"causal, alibi=[0.5, 0.25, 1, 2]", 1 / math.Sqrt(dim), 0, causal, func(h, t, u int) float64 { return slope[h] * float64(u-t) }, false, false},
		{"causal, sinks", 1 / math.Sqrt(dim), 0, causal, none, true, false},
		{"causal, rel_buckets=6, rel_max=5", 1 / math.Sqrt(dim), 0, causal, func(h, t, u int) float64 { return table.At([]int{0, 1, 2, 3, 4, 5, 5}[t-u], h) }, false, true},
		{
			"rel_buckets=6, rel_max=5, rel_bidirectional, scale=1, sinks", 1, 0, func(t, u int) bool { return true },
			func(h, t, u int) float64 {
				return table.At([]int{2, 2, 2, 2, 1, 1, 0, 4, 4, 5, 5, 5, 5}[u-t+6], h)
			}, true, true,
		},
	} {
		text := fmt.Sprintf(`module m {
weight @sink : f32[%d] from "sink"
weight @rel : f32[6, %d] from "rel"
state %%kv : rows {k: f32[%d, %d], v: f64[%d, %d]} paged 64
graph g (T tokens) {
input %%q : f32[T, %d]
input %%k : f32[T, %d]
input %%v : f32[T, %d]
kv_append %%kv, %%k, %%v
%%a = attention %%q, %%kv SINK {heads=%d, kv_heads=%d, %s}
yield %%a
}
}
`, heads, heads, kvHeads, dim, kvHeads, vdim, heads*dim, kvHeads*dim, kvHeads*vdim, heads, kvHeads, c.attrs)
		arg := ""
		if c.rel {
			arg = ", @rel"
		}
		if c.sinks {
			arg += ", @sink"
		}
		m := parse(t, strings.Replace(text, " SINK", arg, 1))
		w := withTable{random(t, m), "rel", table}
		var sink []float64
		if c.sinks {
			s, err := w.Weight(m.Weight("sink"), nil)
			if err != nil {
				t.Fatal(err)
			}
			sink = s.F
		}
		step := interp.Step{Pos: []int{0, 1, 2, 3, 4, 5, 6}, Extra: map[string]*tensor.Tensor{"q": q, "k": k, "v": v}}
		got := run(t, m, step, w, nil)
		same(t, c.attrs, got.F, attend(q, k, v, heads, kvHeads, c.scale, c.softcap, c.see, c.bias, sink), 1e-6)
	}
}

// withTable replaces the values of one weight.
type withTable struct {
	interp.Weights
	name  string
	table *tensor.Tensor
}

func (w withTable) Weight(v *ir.Value, index []int) (*tensor.Tensor, error) {
	if v.Name == w.name {
		return w.table, nil
	}
	return w.Weights.Weight(v, index)
}

// noise returns a fixed matrix of float32 numbers in −1…1.
func noise(seed, rows, cols int) *tensor.Tensor {
	out := tensor.New(tensor.F32, rows, cols)
	for i := range out.F {
		out.F[i] = float64(float32(math.Sin(float64(i*i+7*i*seed+seed) * 12.9898)))
	}
	return out
}

// TestStateRounding checks that state fields are rounded to their element type when
// written.
func TestStateRounding(t *testing.T) {
	t.Parallel()
	m := parse(t, `module m {
state %kv : rows {k: f16[1, 2], v: q8_b32t2[1, 32]} paged 64
graph g (T tokens) {
input %q : f32[T, 2]
input %k : f32[T, 2]
input %v : f32[T, 32]
kv_append %kv, %k, %v
%a = attention %q, %kv {heads=1, kv_heads=1, causal}
yield %a
}
}
`)
	v := make([]float64, 32)
	v[0], v[1], v[2] = 127, 0.4, -3.6 // scale 1
	q := &tensor.Tensor{DType: tensor.F32, Shape: []int{1, 2}, F: []float64{1, 1}}
	got := run(t, m, interp.Step{IDs: []int{0}, Extra: map[string]*tensor.Tensor{"q": q, "k": q, "v": {DType: tensor.F32, Shape: []int{1, 32}, F: v}}}, random(t, m), nil)
	same(t, "rounded value", got.F[:4], []float64{127, 0, -4, 0}, 0)
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	m := parse(t, llama)
	w := random(t, m)
	for _, c := range []struct {
		step interp.Step
		want string
	}{
		{interp.Step{IDs: []int{32}}, "index 32 of row 0 is outside the 32 rows of @embed"},
		{interp.Step{IDs: []int{1, 2}, Pos: []int{0}}, "1 positions for 2 tokens"},
		{interp.Step{IDs: []int{1}, Seq: []int{0, 1}}, "2 sequences for 1 tokens"},
		{interp.Step{IDs: []int{1}, OutRows: []int{1}}, "index 1 of row 0 is outside the 1 rows of %xn"},
		{interp.Step{IDs: []int{1}, Slot: []int{1 << 40}}, "slot 1099511627776"},
		{interp.Step{IDs: []int{1}, Mask: [][]bool{{}}}, "mask row 0 has 0 entries for 1 tokens"},
		{interp.Step{IDs: []int{1}, Mask: [][]bool{{false}}}, "sees no row of %kv[0]"},
	} {
		_, err := interp.Run(m, "decode", &c.step, w, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, expected …%s…", err, c.want)
		}
	}
	if _, err := interp.Run(m, "encode", &interp.Step{}, w, nil); err == nil {
		t.Error("a graph that is missing gives no error")
	}
}
