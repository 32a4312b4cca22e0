package interp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

const oneRank = `module m {
weight @w : f32[4, 4] from "w"
graph g (T tokens) {
input %ids : i32[T]
%x = recv %ids {from=2, cols=4}
%y = matmul %x, @w
%s = all_reduce %y {ranks=3}
send %s {to=7}
%g = all_gather %s {ranks=3, bounds=[0, 4, 3, 7, 7, 11]}
yield %g
}
}
`

// fakeComm simulates a TP group in which all ranks have the same tensor, and a rank 2
// that sends fixed rows.
type fakeComm struct {
	got    *tensor.Tensor
	to     int
	tpSize int
}

func (f *fakeComm) Exchange(mine *tensor.Tensor) ([]*tensor.Tensor, error) {
	return []*tensor.Tensor{mine, mine, mine}[:f.tpSize], nil
}

func (f *fakeComm) Send(to int, x *tensor.Tensor) error {
	f.to, f.got = to, x
	return nil
}

func (f *fakeComm) Recv(from int) (*tensor.Tensor, error) {
	if from != 2 {
		return nil, errors.New("nobody sends")
	}
	x := tensor.New(tensor.F32, 2, 4)
	for i := range x.F {
		x.F[i] = float64(i)
	}
	return x, nil
}

// TestProgramOfOneRank checks that collectives outside regions use the step's Comm.
func TestProgramOfOneRank(t *testing.T) {
	t.Parallel()
	m := parse(t, oneRank)
	unit := interp.NewWeights(m, func(string) (*tensor.Tensor, error) {
		w := tensor.New(tensor.F32, 4, 4)
		for i := range 4 {
			w.F[5*i] = 1
		}
		return w, nil
	})
	f := &fakeComm{tpSize: 3}
	out, err := interp.Run(m, "g", &interp.Step{IDs: []int{5, 6}, Comm: f}, unit, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "sent", f.got.F, []float64{0, 3, 6, 9, 12, 15, 18, 21}, 0)
	if f.to != 7 {
		t.Errorf("sent to rank %d", f.to)
	}
	same(t, "gathered", out[0].F[:11], []float64{0, 3, 6, 0, 3, 6, 9, 0, 3, 6, 9}, 0)
	f.tpSize = 2
	if _, err := interp.Run(m, "g", &interp.Step{IDs: []int{5, 6}, Comm: f}, unit, nil); err == nil || !strings.Contains(err.Error(), "2 ranks exchanged, expected 3") {
		t.Errorf("error %v", err)
	}
	if _, err := interp.Run(m, "g", &interp.Step{IDs: []int{5, 6}}, unit, nil); err == nil || !strings.Contains(err.Error(), "needs Step.Comm") {
		t.Errorf("error %v", err)
	}
}

const unequalParts = `module m {
weight @w : f32[5, 4] from "w"
weight @e[1, 3] : f32[2, 4] from "e.{j}"
weight @rows[2] : f32[3, 4] from part_rows(@w, 0, 2, 2, 5)
weight @cols[2] : f32[5, 3] from part_cols(@w, 0, 3, 2, 4)
weight @own[1, 2, 2] : f32[2, 4] from part_experts(@e, 0, 1, 1, 3)
weight @half[1, 2, 3] : f32[1, 4] from expert_rows(@e, 2)
graph g (T tokens) {
input %ids : i32[T]
yield %ids
}
}
`

// TestUnequalParts checks parts by bounds, with zero padding of the smaller parts.
func TestUnequalParts(t *testing.T) {
	t.Parallel()
	m := parse(t, unequalParts)
	w := interp.NewWeights(m, func(name string) (*tensor.Tensor, error) {
		rows, first := 5, 0.0
		if name != "w" {
			rows, first = 2, 100*float64(name[2]-'0')
		}
		x := tensor.New(tensor.F32, rows, 4)
		for i := range x.F {
			x.F[i] = first + float64(i)
		}
		return x, nil
	})
	for _, c := range []struct {
		weight string
		index  []int
		want   []float64
	}{
		{"rows", []int{0}, []float64{0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0}},
		{"rows", []int{1}, []float64{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{"cols", []int{1}, []float64{2, 3, 0, 6, 7, 0, 10, 11, 0, 14, 15, 0, 18, 19, 0}},
		{"own", []int{0, 0, 0}, []float64{0, 1, 2, 3, 4, 5, 6, 7}},
		{"own", []int{0, 0, 1}, []float64{0, 0, 0, 0, 0, 0, 0, 0}},
		{"own", []int{0, 1, 1}, []float64{200, 201, 202, 203, 204, 205, 206, 207}},
		{"half", []int{0, 1, 2}, []float64{204, 205, 206, 207}},
	} {
		got, err := w.Weight(m.Weight(c.weight), c.index)
		if err != nil {
			t.Fatal(err)
		}
		same(t, c.weight, got.F, c.want, 0)
	}
}
