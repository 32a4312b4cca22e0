package interp_test

import (
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

const unfolding = `module m {
state %s : rows {k: f32[1, 1], v: f32[1, 1]} paged 64 source
graph encode (T tokens) {
input %x : f32[T, 2]
input %k : f32[T, 1]
kv_append %s, %k, %k
%y = unfold %x {before=1, after=2}
yield %y
}
}
`

// TestUnfold: of two sequences of three tokens and of one, rows outside a token's own
// sequence are 0, and the rows of a column follow each other.
func TestUnfold(t *testing.T) {
	t.Parallel()
	step := interp.Step{Seq: []int{0, 0, 0, 1}, Pos: []int{0, 1, 2, 0}, Extra: map[string]*tensor.Tensor{
		"x": {DType: tensor.F32, Shape: []int{4, 2}, F: []float64{1, 10, 2, 20, 3, 30, 4, 40}},
		"k": tensor.New(tensor.F32, 4, 1)}}
	m := parse(t, unfolding)
	out, err := interp.Run(m, "encode", &step, random(t, m), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{
		0, 1, 2, 3, 0, 10, 20, 30,
		1, 2, 3, 0, 10, 20, 30, 0,
		2, 3, 0, 0, 20, 30, 0, 0,
		0, 4, 0, 0, 0, 40, 0, 0,
	}
	if !slices.Equal(out[0].F, want) {
		t.Errorf("have %v, want %v", out[0].F, want)
	}
}
