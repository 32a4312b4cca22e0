package interp

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A Comm connects the program of one rank to the other ranks of its model.
type Comm interface {
	// Exchange returns the tensors of all ranks of the TP group in rank order, including
	// the caller's own.
	Exchange(mine *tensor.Tensor) ([]*tensor.Tensor, error)
	Send(to int, x *tensor.Tensor) error
	Recv(from int) (*tensor.Tensor, error)
}

// exchange runs a collective: inside a par region on the ranks' tensors, in the program
// of one rank through the step's Comm.
func (r *run) exchange(o *ir.Op, own []*tensor.Tensor) ([]*tensor.Tensor, error) {
	comm := r.step.Comm
	if comm == nil {
		if o.Def.Attr("ranks") == nil || o.Has("ranks") && o.Int("ranks") != len(own) {
			return nil, fmt.Errorf("the program of one rank of several needs Step.Comm")
		}
		return o.Def.Eval(o, own)
	}
	switch o.Def {
	case ops.Send:
		return nil, comm.Send(o.Int("to"), own[0])
	case ops.Recv:
		t, err := comm.Recv(o.Int("from"))
		return []*tensor.Tensor{t}, err
	}
	parts, err := comm.Exchange(own[0])
	if err == nil && len(parts) != o.Int("ranks") {
		err = fmt.Errorf("%d ranks exchanged, expected %d", len(parts), o.Int("ranks"))
	}
	if err != nil {
		return nil, err
	}
	return o.Def.Eval(o, parts)
}
