package interp_test

import (
	"math"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

const selecting = `module m {
state %kv : rows {k: f32[1, 2], v: f32[1, 2]} paged 64
state %index : rows {k: f32[1, 1]} paged 64
graph g (T tokens) {
input %q : f32[T, 2]
input %iq : f32[T, 2]
input %w : f32[T, 2]
input %ik : f32[T, 1]
input %k : f32[T, 2]
kv_append %kv, %k, %k
kv_append %index, %ik
%s = select_rows %iq, %w, %index {heads=2, top=2}
%e = select_rows %iq, %w, %index {heads=2, top=2, every=2}
%a = attention %q, %kv, %s {heads=1, kv_heads=1, causal, selected}
yield %s, %e, %a
}
}
`

// TestSelectRows: with one channel and two heads that read it with opposite signs, a row's
// score is w₀·max(0, k) + w₁·max(0, −k). Values are the rows' positions, and queries are
// 0, so attention is the mean of the chosen positions.
func TestSelectRows(t *testing.T) {
	t.Parallel()
	const n = 6
	keys := []float64{3, -4, 1, -2, 5, 0.5}
	rows := func(cols int, f func(t, c int) float64) *tensor.Tensor {
		x := tensor.New(tensor.F32, n, cols)
		for i := range x.F {
			x.F[i] = f(i/cols, i%cols)
		}
		return x
	}
	step := interp.Step{Pos: []int{0, 1, 2, 3, 4, 5}, Extra: map[string]*tensor.Tensor{
		"q": rows(2, func(int, int) float64 { return 0 }), "iq": rows(2, func(_, c int) float64 { return float64(1 - 2*c) }),
		"w":  rows(2, func(_, c int) float64 { return float64(2 - c) }), // scores 6, 4, 2, 2, 10, 1
		"ik": rows(1, func(t, _ int) float64 { return keys[t] }), "k": rows(2, func(t, _ int) float64 { return float64(t) })}}
	inf := math.Inf(1)
	m := parse(t, selecting)
	out, err := interp.Run(m, "g", &step, random(t, m), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out[0].F, []float64{0, inf, 0, 1, 0, 1, 0, 1, 0, 4, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("chosen: have %v, want %v", got, want)
	}
	if got, want := out[1].F, []float64{inf, inf, 1, inf, 1, inf, 1, 3, 1, 3, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("of every second row: have %v, want %v", got, want)
	}
	same(t, "attention", out[2].F, []float64{0, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 2, 2, 2, 2}, 1e-9)
}
