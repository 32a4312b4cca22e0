package compiler

import (
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// Values returns the tensors of the model's files for the reference interpreter.
func (m *Model) Values() interp.Source { return valuesOf(m.set) }

func valuesOf(set *checkpoint.Set) interp.Source {
	return func(name string) (*tensor.Tensor, error) {
		x, err := set.Float32(name)
		if err != nil {
			return nil, err
		}
		info, _ := set.Lookup(name)
		out := tensor.New(info.DType, info.Shape...)
		for i := range x {
			out.F[i] = float64(x[i])
		}
		return out, nil
	}
}
