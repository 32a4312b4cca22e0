package interp_test

import (
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

// filled are weights that are one number everywhere.
type filled float64

func (n filled) Weight(v *ir.Value, _ []int) (*tensor.Tensor, error) {
	t := tensor.New(tensor.F32, v.Type.Shape[0].N, v.Type.Shape[1].N)
	for i := range t.F {
		t.F[i] = float64(n)
	}
	return t, nil
}

// TestAdapters checks that a row gets what its sequence's adapter adds: rows of tokens and
// of outputs.
func TestAdapters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows string
		want []float64 // of each row
	}{
		{"identity %x", []float64{0, 0, 10, 10, 100}},
		{"rows %x, %out_rows", []float64{100, 10}},
	} {
		m := parse(t, `module m {
weight @w : f32[2, 2] from "w"
graph g (T tokens, R out_rows, S sequences) {
input %ids : i32[T]
input %out_rows : i32[R]
input %x : f32[T, 2]
%r = `+c.rows+`
%y = matmul %r, @w
%z = lora %y, %r, @w
yield %z
}
}
`)
		x := tensor.New(tensor.F32, 5, 2)
		for i := range x.F {
			x.F[i] = 0.5
		}
		step := interp.Step{IDs: make([]int, 5), Seq: []int{0, 0, 1, 1, 2}, OutRows: []int{4, 2}, Extra: map[string]*tensor.Tensor{"x": x},
			Adapter: []int{-1, -1, 0, 0, 1}, Adapters: []interp.Weights{filled(10), filled(100)}}
		got, err := interp.Run(m, "g", &step, filled(0), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if got[0].At(i, 0) != want || got[0].At(i, 1) != want {
				t.Errorf("%s: row %d is %v, expected %v", c.rows, i, got[0].F[2*i:2*i+2], want)
			}
		}
	}
}
