package interp

import (
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// lora adds x·Δᵀ to the rows of y whose sequence has an adapter, where Δ is what it adds to
// the op's weight.
func (r *run) lora(o *ir.Op, y, x *tensor.Tensor) (*tensor.Tensor, error) {
	out := y.Clone()
	index, err := o.Args[2].At(r.index, len(o.Args[2].Count))
	if err != nil {
		return nil, err
	}
	n, k := y.Shape[1], x.Shape[1]
	for row := range y.Shape[0] {
		a := r.step.adapterOf(o.Result().Role(), row)
		if a < 0 {
			continue
		}
		delta, err := r.step.Adapters[a].Weight(o.Args[2].Value, index)
		if err != nil {
			return nil, err
		}
		for c := range n {
			for i, v := range delta.F[c*k : (c+1)*k] {
				out.F[row*n+c] += v * x.F[row*k+i]
			}
		}
	}
	return out, nil
}

// adapterOf returns the adapter of a row, of a token or of an output, or -1.
func (s *Step) adapterOf(role string, row int) int {
	if role == "out_rows" {
		row = s.OutRows[row]
	}
	return s.Adapter[row]
}
