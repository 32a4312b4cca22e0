package passes

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// A sum is a value that ranks have not added up yet: each rank's partial sums
// (leaves) and whole terms. Additions extend it, so two sublayers that meet in
// one sum, as in a layer with parallel attention, need one exchange.
type sum struct {
	leaves []*ir.Value
	rest   []ir.Arg
	op     *ir.Op // the postponed addition; nil: the leaf itself
}

// postpone delays an addition with a partial sum as a term.
func (s *sharder) postpone(op *ir.Op) bool {
	sm := &sum{op: op}
	for _, a := range op.Args {
		if a.Kind == ir.Weight {
			sm.rest = append(sm.rest, a)
			continue
		}
		v := a.Value
		if n := s.now[v]; n != nil {
			v = n
		}
		switch {
		case s.cuts[v] != nil || v.Type.Cols() != op.Result().Type.Cols():
			return false
		case s.sums[v] != nil:
			sm.leaves = append(sm.leaves, s.sums[v].leaves...)
			sm.rest = append(sm.rest, s.sums[v].rest...)
		default:
			sm.rest = append(sm.rest, ir.A(v))
		}
	}
	if len(sm.leaves) == 0 {
		return false
	}
	s.sums[op.Result()] = sm
	return true
}

// current returns the current replacement of a value; partial sums are added
// up.
func (s *sharder) current(v *ir.Value) (*ir.Value, error) {
	if n := s.now[v]; n != nil {
		v = n
	}
	if s.sums[v] == nil {
		return v, nil
	}
	sm := s.sums[v]
	delete(s.sums, v)
	got, err := s.total(v, sm)
	if err == nil && got != v {
		s.now[v] = got
	}
	return got, err
}

// whole is current for uses that need an undivided value.
func (s *sharder) whole(v *ir.Value) (*ir.Value, error) {
	v, err := s.current(v)
	if err == nil && s.cuts[v] != nil {
		err = fmt.Errorf("%s leaves the layer divided", v)
	}
	return v, err
}

// total adds a sum up over the ranks: the partial sums by one exchange, then
// the whole terms.
func (s *sharder) total(v *ir.Value, sm *sum) (*ir.Value, error) {
	if sm.op == nil {
		return s.add(ops.AllReduce, v.Name+"_sum", nil, ir.A(v))
	}
	if len(sm.leaves) == 1 { // unchanged
		for i, a := range sm.op.Args {
			if a.Kind == ir.Weight {
				continue
			}
			got, err := s.current(a.Value)
			if err != nil {
				return nil, err
			}
			sm.op.Args[i].Value = got
		}
		return v, s.emit(sm.op)
	}
	acc := sm.leaves[0]
	for _, leaf := range sm.leaves[1:] {
		var err error
		if acc, err = s.add(ops.Add, v.Name+"_parts", nil, ir.A(acc), ir.A(leaf)); err != nil {
			return nil, err
		}
	}
	acc, err := s.add(ops.AllReduce, v.Name+"_sum", nil, ir.A(acc))
	if err != nil || len(sm.rest) == 0 {
		return acc, err
	}
	for _, a := range sm.rest[:len(sm.rest)-1] {
		if acc, err = s.add(ops.Add, v.Name+"_sum", nil, ir.A(acc), a); err != nil {
			return nil, err
		}
	}
	sm.op.Args = []ir.Arg{ir.A(acc), sm.rest[len(sm.rest)-1]}
	return v, s.emit(sm.op)
}
