package interp

import (
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// unfold implements the op unfold (ops.Unfold).
func (r *run) unfold(o *ir.Op, x *tensor.Tensor) *tensor.Tensor {
	type place struct{ seq, pos int }
	rows := map[place]int{}
	for t, q := range r.step.Seq {
		rows[place{q, r.step.Pos[t]}] = t
	}
	cols, before := x.Shape[1], o.Int("before")
	taps := before + 1 + o.Int("after")
	out := tensor.New(tensor.F32, x.Shape[0], cols*taps)
	for t, q := range r.step.Seq {
		for j := range taps {
			from, ok := rows[place{q, r.step.Pos[t] - before + j}]
			if !ok {
				continue
			}
			for c := range cols {
				out.F[(t*cols+c)*taps+j] = x.At(from, c)
			}
		}
	}
	return out
}
