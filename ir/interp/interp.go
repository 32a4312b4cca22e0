package interp

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Run runs one step of a graph and returns its outputs in the order of its yield. The
// rows that the step writes are stored in st for later steps. The module must pass
// ir.Verify. st may be nil if no later step follows.
func Run(m *ir.Module, graph string, step *Step, w Weights, st *States) ([]*tensor.Tensor, error) {
	g := m.Graph(graph)
	if g == nil {
		return nil, fmt.Errorf("module %s has no graph %s", m.Name, graph)
	}
	if st == nil {
		st = NewStates()
	}
	onSources := g.WritesSource()
	s, err := step.filled(st, onSources)
	if err != nil {
		return nil, err
	}
	r := &run{step: s, weights: w, states: st, onSources: onSources, vals: map[*ir.Value][]*tensor.Tensor{}, tpSize: 1}
	for _, in := range g.Inputs {
		t, err := s.input(in)
		if err != nil {
			return nil, err
		}
		if err := r.bind(in, []*tensor.Tensor{t}); err != nil {
			return nil, err
		}
	}
	if err := r.block(g.Body); err != nil {
		return nil, fmt.Errorf("graph %s: %w", graph, err)
	}
	st.commit(s, onSources)
	var out []*tensor.Tensor
	for _, y := range g.Body.Yield {
		out = append(out, r.vals[y][0])
	}
	return out, nil
}

// A run is the state of one step.
type run struct {
	step      *Step
	weights   Weights
	states    *States
	onSources bool                           // the tokens are source tokens
	vals      map[*ir.Value][]*tensor.Tensor // one tensor, or one per rank of the par region that defines it
	index     []int                          // indices of the enclosing repeat and par regions; that of par is set for each rank
	par       int                            // position of the par region in index
	tpSize    int                            // size of the enclosing par region; 1 outside
	tpRank    int                            // rank that the current op runs for
	iter      int                            // iteration of the innermost repeat, from 0
}

// bind records a value's tensors after checking their shapes against its type.
func (r *run) bind(v *ir.Value, ts []*tensor.Tensor) error {
	var want []int
	for _, s := range v.Type.Shape {
		if s.Dim != nil {
			want = append(want, r.step.dim(s.Dim))
		} else {
			want = append(want, s.N)
		}
	}
	for tpRank, t := range ts {
		if !slices.Equal(t.Shape, want) {
			return fmt.Errorf("%s has shape %v, but its type %s requires %v", v, t.Shape, v.Type, want)
		}
		if r.step.Trace != nil {
			r.step.Trace(v, r.index, tpRank, t)
		}
	}
	r.vals[v] = ts
	return nil
}

func (r *run) block(b *ir.Block) error {
	for _, o := range b.Ops {
		if err := r.op(o); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) op(o *ir.Op) error {
	switch {
	case o.Def == ir.Repeat:
		return r.repeat(o)
	case o.Def == ir.Par:
		return r.parRegion(o)
	case o.Def == ir.Fuse:
		if err := r.block(o.Body); err != nil {
			return err
		}
		return r.results(o, o.Body.Yield)
	}
	out, err := r.lockstep(o.AtIteration(r.iter))
	if err != nil {
		return fmt.Errorf("%s: op %s: %w", o.Pos, o.Def.Name, err)
	}
	for i, v := range o.Results {
		if err := r.bind(v, out[i]); err != nil {
			return err
		}
	}
	return nil
}

// results binds the op's results to the values of a body's yields.
func (r *run) results(o *ir.Op, yields []*ir.Value) error {
	var ts [][]*tensor.Tensor
	for _, y := range yields {
		ts = append(ts, r.vals[y])
	}
	for i, v := range o.Results {
		if err := r.bind(v, ts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) repeat(o *ir.Op) error {
	var carried [][]*tensor.Tensor
	for _, a := range o.Args {
		carried = append(carried, r.vals[a.Value])
	}
	outer := r.iter
	r.index = append(r.index, 0)
	for i := o.Int("lo"); i < o.Int("hi"); i++ {
		r.index[len(r.index)-1] = i
		r.iter = i - o.Int("lo")
		for k, p := range o.Body.Params {
			if err := r.bind(p, carried[k]); err != nil {
				return err
			}
		}
		if err := r.block(o.Body); err != nil {
			return fmt.Errorf("iteration %d: %w", i, err)
		}
		for k, y := range o.Body.Yield {
			carried[k] = r.vals[y]
		}
	}
	r.index = r.index[:len(r.index)-1]
	r.iter = outer
	return r.results(o, o.Body.Yield)
}

// parRegion runs the ranks in lockstep, op by op. The results are those of rank 0.
func (r *run) parRegion(o *ir.Op) error {
	r.par, r.tpSize = len(r.index), o.Int("ranks")
	r.index = append(r.index, 0)
	if err := r.block(o.Body); err != nil {
		return err
	}
	r.index, r.tpSize = r.index[:len(r.index)-1], 1
	for i, v := range o.Results {
		if err := r.bind(v, r.vals[o.Body.Yield[i]][:1]); err != nil {
			return err
		}
	}
	return nil
}

// lockstep runs one op for every rank and returns the tensors of each result.
func (r *run) lockstep(o *ir.Op) ([][]*tensor.Tensor, error) {
	out := make([][]*tensor.Tensor, len(o.Results))
	var exchanged []*tensor.Tensor
	for tpRank := range r.tpSize {
		r.tpRank = tpRank
		if r.tpSize > 1 {
			r.index[r.par] = tpRank
		}
		args, err := r.args(o, tpRank)
		if err != nil {
			return nil, err
		}
		if o.Def.Is(ir.Collective) {
			exchanged = append(exchanged, args...)
			continue
		}
		ts, err := r.eval(o, args)
		if err != nil {
			return nil, err
		}
		for i, t := range ts {
			out[i] = append(out[i], t)
		}
	}
	if o.Def.Is(ir.Collective) {
		ts, err := r.exchange(o, exchanged)
		if err != nil {
			return nil, err
		}
		for i, t := range ts {
			out[i] = slices.Repeat([]*tensor.Tensor{t}, r.tpSize)
		}
	}
	return out, nil
}

// args returns the tensors of an op's arguments for one rank; nil for states.
func (r *run) args(o *ir.Op, tpRank int) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	for i, a := range o.Args {
		switch {
		case a.Kind == ir.State, o.Def == ops.Lora && i == 2: // lora reads no weight of the model
			out = append(out, nil)
		case a.Kind == ir.Weight:
			t, err := r.weight(o, i)
			if err != nil {
				return nil, err
			}
			out = append(out, t)
		default:
			ts := r.vals[a.Value]
			out = append(out, ts[min(tpRank, len(ts)-1)])
		}
	}
	return out, nil
}

// weight returns argument i of an op. If the op reads every element of the last index,
// they are stacked in one tensor.
func (r *run) weight(o *ir.Op, i int) (*tensor.Tensor, error) {
	a := o.Args[i]
	index, err := a.At(r.index, o.IndexCount(i))
	if err != nil {
		return nil, err
	}
	if len(index) == len(a.Count) {
		return r.weights.Weight(a.Value, index)
	}
	last := a.Count[len(a.Count)-1]
	var out *tensor.Tensor
	for n := last.Lo; n < last.Hi; n++ {
		t, err := r.weights.Weight(a.Value, append(slices.Clone(index), n))
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = &tensor.Tensor{DType: t.DType, Shape: append([]int{last.Len()}, t.Shape...)}
		}
		out.F = append(out.F, t.F...)
	}
	return out, nil
}

// eval runs one op for one rank.
func (r *run) eval(o *ir.Op, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	switch o.Def {
	case ops.KVAppend:
		return nil, r.kvAppend(o, args[1:])
	case ops.Attention:
		name, err := r.stateName(o.Args[1])
		if err != nil {
			return nil, err
		}
		t, err := r.attention(o, name, args)
		return []*tensor.Tensor{t}, err
	case ops.SelectRows:
		name, err := r.stateName(o.Args[2])
		if err != nil {
			return nil, err
		}
		return []*tensor.Tensor{r.selectRows(o, name, args)}, nil
	case ops.Lora:
		t, err := r.lora(o, args[0], args[1])
		return []*tensor.Tensor{t}, err
	case ops.RankCols:
		return []*tensor.Tensor{ops.RankPart(o, args[0], r.tpRank)}, nil
	case ops.Unfold:
		return []*tensor.Tensor{r.unfold(o, args[0])}, nil
	case ops.RopeTable:
		return r.ropeTable(o, args[0])
	}
	if o.Def.Step != nil {
		t, err := r.recurrence(o, args)
		return []*tensor.Tensor{t}, err
	}
	return o.Def.Eval(o, args)
}

// stateName returns the name of one element of an array state.
func (r *run) stateName(a ir.Arg) (string, error) {
	index, err := a.At(r.index, len(a.Count))
	return elementName(a.Value, index), err
}

// elementName returns the name of one element of an array weight or state: @w[3].
func elementName(v *ir.Value, index []int) string {
	a := ir.A(v)
	for _, n := range index {
		a.Index = append(a.Index, ir.ConstIndex(n))
	}
	return a.String()
}

func (r *run) kvAppend(o *ir.Op, vals []*tensor.Tensor) error {
	name, err := r.stateName(o.Args[0])
	if err != nil {
		return err
	}
	for t := range vals[0].Shape[0] {
		var fields [][]float64
		for _, v := range vals {
			fields = append(fields, slices.Clone(v.F[t*v.Shape[1]:(t+1)*v.Shape[1]]))
		}
		if err := r.states.write(o.Args[0].Value, name, r.step, t, fields); err != nil {
			return err
		}
	}
	return nil
}

// ropeTable runs rope_table per sequence, because the length of a token's sequence
// selects the short or long frequencies.
func (r *run) ropeTable(o *ir.Op, pos *tensor.Tensor) ([]*tensor.Tensor, error) {
	length := map[int]int{}
	for t, q := range r.step.Seq {
		length[q] = max(length[q], r.step.Pos[t]+1)
		if !r.onSources {
			length[q] = max(length[q], r.states.Len(q))
		}
	}
	out := tensor.New(tensor.F32, len(pos.F), o.Int("dim"))
	for t, p := range pos.F {
		copy(out.F[t*o.Int("dim"):], ops.RopeRow(o, p, length[r.step.Seq[t]]))
	}
	return []*tensor.Tensor{out}, nil
}
