package ctext

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
)

// streamWeights emits the weights of a hyper-connection.
func (r *Rows) streamWeights(ops []*ir.Op, at int) error {
	op := ops[at]
	params, err := r.weights(op, 1)
	if err != nil {
		return err
	}
	return r.rowCall(ops, at, 1, "ifl_row_stream_weights", fmt.Sprintf("%s, %s, %d, %d, %d, %s", params[0], params[1], op.Args[0].Type.Cols(),
		op.Int("streams"), op.Int("iterations"), Float(op.Float("eps"))))
}

// mixStreams emits sums of streams.
func (r *Rows) mixStreams(ops []*ir.Op, at int) error {
	op := ops[at]
	n := op.Int("streams")
	return r.rowCall(ops, at, 2, "ifl_row_mix_streams", fmt.Sprintf("%d, %d, %d", n, op.Args[1].Type.Cols()/n, op.Args[0].Type.Cols()/n))
}

// mergeAttention emits the join of two results of attention.
func (r *Rows) mergeAttention(ops []*ir.Op, at int) error {
	op := ops[at]
	sinks := []string{"NULL"}
	if len(op.Args) > 2 {
		var err error
		if sinks, err = r.weights(op, 2); err != nil {
			return err
		}
	}
	heads := op.Int("heads")
	return r.rowCall(ops, at, 2, "ifl_row_merge_attention", fmt.Sprintf("%s, %d, %d", sinks[0], heads, op.Results[0].Type.Cols()/heads))
}

// weights returns the addresses of an op's weights from an argument on.
func (r *Rows) weights(op *ir.Op, from int) (out []string, err error) {
	for _, a := range op.Args[from:] {
		w, err := r.Weight(a, r.loop)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

// rowCall emits a call with the addresses of the result and of the first n arguments,
// followed by further arguments in C.
func (r *Rows) rowCall(ops []*ir.Op, at, n int, function, rest string) error {
	op, rows := ops[at], ""
	for _, a := range op.Args[:n] {
		l, err := r.contiguous(a.Value)
		if err != nil {
			return err
		}
		rows += ", " + l.ptr
	}
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	r.w.P("%s(%s%s, %s);", function, dst.ptr, rows, rest)
	r.where[op.Results[0]] = dst
	return nil
}
