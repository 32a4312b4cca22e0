package passes

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// weight returns a weight of the source on this rank: whole, or the rank's
// part. Its transform reads only stored tensors. indices is the number of
// indices that select an element at its use, including the rank's.
func (s *stage) weight(v *ir.Value, mine bool, indices int) (*ir.Value, error) {
	if w := s.weights[v]; w != nil {
		return w, nil
	}
	w := &ir.Value{Name: v.Name, Kind: ir.Weight, Type: ir.T(v.Type.Elem, v.Type.Shape...), Count: slices.Clone(v.Count), Pos: v.Pos,
		Transform: s.inline(v.Transform)}
	of := v.Name
	if mine {
		if v.Transform.Args[0].Op != "weight" {
			return nil, fmt.Errorf("%s: its transform %s is not a part of another weight", v, v.Transform)
		}
		of = v.Transform.Args[0].Name
		if err := s.part(w, indices-1); err != nil {
			return nil, fmt.Errorf("%s: %w", v, err)
		}
		if ref := s.p.src.Weight(of); len(ref.Count) == 0 {
			w.Count = nil // one for all layers
		}
	}
	switch {
	case s.mod.Weight(of) == nil:
		w.Name = of
	case s.mod.Weight(w.Name) != nil: // by a part of it, in other layers
		w.Name = s.names.Fresh(w.Name)
	}
	s.of[w.Name] = of
	s.mod.Weights = append(s.mod.Weights, w)
	s.weights[v] = w
	return w, nil
}

// inline replaces references to other weights by their transforms.
func (s *stage) inline(r *tensor.Transform) *tensor.Transform {
	if r == nil {
		return nil
	}
	if r.Op == "weight" {
		return s.inline(s.p.src.Weight(r.Name).Transform)
	}
	out := *r
	out.Nums = slices.Clone(r.Nums)
	out.Args = nil
	for _, a := range r.Args {
		out.Args = append(out.Args, s.inline(a))
	}
	return &out
}

// part replaces the rank's index, at place at of a weight, by this rank's part.
func (s *stage) part(w *ir.Value, at int) error {
	r := w.Transform
	axis := 0
	switch r.Op {
	case "part_experts":
		lo, hi := ir.PartBounds(r, 0, s.p.tpRank)
		w.Transform = r.Args[0]
		w.Count = slices.Delete(w.Count, at, at+1)
		w.Count[at] = ir.Range{Lo: lo, Hi: hi}
		return nil
	case "expert_rows":
		r.Op = "rows"
	case "expert_cols":
		r.Op, axis = "cols", 1
	case "part_rows":
		r.Op = "rows"
	case "part_cols":
		r.Op, axis = "cols", len(w.Type.Shape)-1
	default:
		return fmt.Errorf("transform %s is not a part", r.Op)
	}
	lo, hi := ir.PartBounds(r, w.Type.Shape[axis].N, s.p.tpRank)
	r.Nums = []float64{float64(lo), float64(hi)}
	w.Type.Shape = slices.Clone(w.Type.Shape)
	w.Type.Shape[axis] = ir.N(hi - lo)
	w.Count = slices.Delete(w.Count, at, at+1)
	return nil
}

// state returns a state of the source on this rank.
func (s *stage) state(v *ir.Value, mine bool) *ir.Value {
	if w := s.states[v]; w != nil {
		return w
	}
	w := &ir.Value{Name: v.Name, Kind: ir.State, Count: slices.Clone(v.Count), Pos: v.Pos}
	st := *v.State
	st.Fields = slices.Clone(v.State.Fields)
	for i := range st.Fields {
		st.Fields[i].Shape = slices.Clone(st.Fields[i].Shape)
	}
	w.State = &st
	if mine {
		w.Count = w.Count[:len(w.Count)-1]
	}
	s.mod.States = append(s.mod.States, w)
	s.states[v] = w
	return w
}

// columns selects this rank's columns.
func (s *stage) columns(b *ir.Block, op *ir.Op) error {
	bounds := op.Ints("bounds")[2*s.p.tpRank:]
	as := ir.Attrs{{Name: "heads", Val: 1}, {Name: "lo", Val: bounds[0]}, {Name: "hi", Val: bounds[1]}}
	if err := s.add(b, ops.HeadCols, []ir.Arg{ir.A(s.vals[op.Args[0].Value])}, as, op.Result().Name); err != nil {
		return err
	}
	s.vals[op.Result()] = b.Ops[len(b.Ops)-1].Result()
	return nil
}

// own rewrites an op of a par region for this rank alone. Ranks with fewer
// heads than the widest one get narrower values.
func (s *stage) own(op, out *ir.Op) error {
	switch {
	case op.Def.Name == "all_reduce":
		out.SetAttr("ranks", s.p.tpSize)
	case op.Def.Name == "kv_append":
		for i := range out.Args[0].State.Fields {
			f := &out.Args[0].State.Fields[i]
			width := f.Elems() / f.Shape[0]
			if n := out.Args[i+1].Type.Cols(); n%width != 0 {
				return fmt.Errorf("%s has %d columns, which is not a multiple of the head size %d", out.Args[i+1], n, width)
			}
			f.Shape[0] = out.Args[i+1].Type.Cols() / width
		}
	case op.Def.Step != nil:
		ownRecurrent(op, out, s.p.tpRank)
	case op.Def.Name == "attention":
		heads := op.Int("heads")
		own := out.Args[0].Type.Cols() / (op.Args[0].Type.Cols() / heads)
		out.SetAttr("heads", own)
		k, _ := out.Args[1].State.Field("k")
		out.SetAttr("kv_heads", k.Shape[0])
		if slopes := op.Floats("alibi"); len(slopes) > heads { // of all ranks
			out.SetAttr("alibi", slices.Clone(slopes[s.p.tpRank*heads:][:own]))
		}
	case op.Def.Attr("heads") != nil && op.Int("heads") > 1:
		out.SetAttr("heads", out.Args[0].Type.Cols()/(op.Args[0].Type.Cols()/op.Int("heads")))
	}
	return nil
}
