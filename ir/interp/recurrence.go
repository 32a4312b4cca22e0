package interp

import (
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A fixedState is a fixed state after the rows of a sequence up to last.
type fixedState struct {
	rows int
	last *stateRow
	f    []float64
}

// recurrence implements the ops with a Step, token by token. It keeps the rows of the
// arguments, not only the state, so that a token of a draft tree starts from its own
// ancestors and rejected rows leave no trace.
func (r *run) recurrence(o *ir.Op, args []*tensor.Tensor) (*tensor.Tensor, error) {
	name, err := r.stateName(o.Args[0])
	if err != nil {
		return nil, err
	}
	out := tensor.New(tensor.F32, args[1].Shape[0], o.Results[0].Type.Cols())
	for t := range out.Shape[0] {
		row := make([][]float64, len(args))
		for i, a := range args {
			switch {
			case a == nil:
			case o.Args[i].Kind == ir.Weight:
				row[i] = a.F
			default:
				row[i] = a.F[t*a.Shape[1]:][:a.Shape[1]]
			}
		}
		r.states.put(name, r.step, t, row)
		rows := r.states.visible(name, r.step, t, view{causal: true})
		r.advance(o, stateKey{name, r.step.Seq[t]}, rows, out.F[t*out.Shape[1]:][:out.Shape[1]])
	}
	return out, nil
}

// advance runs Step over the rows that a token sees, its own last. It begins after the
// rows of the latest call if they are the same.
func (r *run) advance(o *ir.Op, key stateKey, rows []*stateRow, out []float64) {
	st := r.states.fixed[key]
	if st == nil || st.rows >= len(rows) || st.rows > 0 && rows[st.rows-1] != st.last {
		st = &fixedState{f: make([]float64, o.Args[0].State.Fields[0].Elems())}
		r.states.fixed[key] = st
	}
	for ; st.rows < len(rows); st.rows++ {
		st.last = rows[st.rows]
		o.Def.Step(o, st.f, ir.StepArgs{Args: st.last.fields, First: st.rows == 0, Rank: r.tpRank}, out)
	}
}
