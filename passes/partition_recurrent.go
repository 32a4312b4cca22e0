package passes

import (
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// separate divides each projection that a recurrence reads in parts, with its
// convolution and activation, into one per part, because ranks divide the columns
// of each part, not those of all together.
func (s *sharder) separate(g *ir.Graph, b *ir.Block) error {
	r := &readers{ir.Uses(g), s.geo}
	for _, split := range slices.Clone(b.Ops) {
		if split.Def.Name != "split" || split.Int("panel") != 0 || !slices.ContainsFunc(split.Results, func(v *ir.Value) bool { return r.role(v, 0).geo != nil }) {
			continue
		}
		chain := projection(split.Args[0].Value, r.uses)
		if chain == nil {
			continue
		}
		at := 0
		for i, n := range split.Ints("sizes") {
			v, err := s.separated(b, chain, split, ir.Range{Lo: at, Hi: at + n})
			if err != nil {
				return err
			}
			at += n
			g.ReplaceUses(split.Results[i], v)
		}
		b.Ops = slices.DeleteFunc(b.Ops, func(op *ir.Op) bool { return op == split || slices.Contains(chain, op) })
	}
	return nil
}

// projection lists the ops from a matmul to the value, if they are only
// convolutions and elementwise ops on weights, and nothing else reads their
// results; else nothing.
func projection(v *ir.Value, uses map[*ir.Value][]ir.Use) []*ir.Op {
	var chain []*ir.Op
	for {
		op := v.Op
		if op == nil || len(uses[v]) != 1 {
			return nil
		}
		chain = append([]*ir.Op{op}, chain...)
		in := input(op)
		switch {
		case op.Def.Name == "matmul" && op.Int("slices") == 1:
			return chain
		case op.Def != ops.ShortConv && !op.Def.Is(ir.Elementwise) || slices.ContainsFunc(op.Args[in+1:], func(a ir.Arg) bool { return a.Kind != ir.Weight }):
			return nil
		}
		v = op.Args[in].Value
	}
}

// input returns the index of an op's first argument that is neither a weight nor a
// state.
func input(op *ir.Op) int {
	return slices.IndexFunc(op.Args, func(a ir.Arg) bool { return a.Kind != ir.Weight && a.Kind != ir.State })
}

// separated adds the ops of a chain for some of its columns, before the split, and
// returns the result.
func (s *sharder) separated(b *ir.Block, chain []*ir.Op, split *ir.Op, cols ir.Range) (*ir.Value, error) {
	var v *ir.Value
	for _, op := range chain {
		args := slices.Clone(op.Args)
		for i, a := range args {
			switch {
			case a.Kind == ir.Weight && a.Type.Cols() == 1 && op.Def.Is(ir.Elementwise): // of the whole row
			case a.Kind == ir.Weight && (op.Def.Name == "matmul" || len(a.Type.Shape) == 1):
				args[i] = s.slice(a, "rows", 0, cols)
			case a.Kind == ir.Weight:
				args[i] = s.slice(a, "cols", 1, cols)
			case a.Kind == ir.State:
				args[i] = s.stateOf(a, cols)
			case v != nil:
				args[i] = ir.A(v)
			}
		}
		o, err := ir.NewOp(op.Def, args, op.Attrs, s.names.Fresh(op.Result().Name))
		if err != nil {
			return nil, err
		}
		b.Insert(b.Index(split), o)
		v = o.Result()
	}
	return v, nil
}

// slice returns the weight with some of a weight's rows or columns.
func (s *sharder) slice(a ir.Arg, how string, axis int, r ir.Range) ir.Arg {
	shape := slices.Clone(a.Type.Shape)
	shape[axis] = ir.N(r.Len())
	w := &ir.Value{Name: s.names.Fresh(a.Name + "_part"), Kind: ir.Weight, Type: ir.T(a.Type.Elem, shape...), Count: slices.Clone(a.Count),
		Transform: &tensor.Transform{Op: how, Args: []*tensor.Transform{ir.RefTransform(a.Value)}, Nums: []float64{float64(r.Lo), float64(r.Hi)}}}
	s.mod.Weights = append(s.mod.Weights, w)
	return ir.Arg{Value: w, Index: a.Index}
}

// stateOf returns the state of a convolution of some of the columns, created once
// for all layers.
func (s *sharder) stateOf(a ir.Arg, r ir.Range) ir.Arg {
	key := stateColumns{a.Value, r}
	if s.columns[key] == nil {
		f := a.State.Fields[0]
		f.Shape = slices.Clone(f.Shape)
		f.Shape[len(f.Shape)-1] = r.Len()
		v := &ir.Value{Name: s.names.Fresh(a.Name), Kind: ir.State, Count: slices.Clone(a.Count), State: &ir.StateType{Fixed: true, Fields: []ir.Field{f}}}
		s.mod.States = append(s.mod.States, v)
		s.columns[key] = v
	}
	return ir.Arg{Value: s.columns[key], Index: a.Index}
}

// stateColumns are some columns of the state of a convolution.
type stateColumns struct {
	state *ir.Value
	cols  ir.Range
}

// recurrence continues with each rank's heads of a linear recurrence.
func (s *sharder) recurrence(op *ir.Op) error {
	geo, shape := s.geo[op.Args[0].Value], ops.RecurrenceShapeOf(op)
	s.state(op, 0, func(f *ir.Field) { f.Shape[0] = geo.q.width() })
	for i, a := range op.Args[1:] {
		i++
		if a.Kind == ir.Weight {
			w, err := s.part(a, "part_rows", geo.q)
			if err != nil {
				return err
			}
			op.Args[i] = w
			continue
		}
		c := geo.q.times(cols(a.Value, s.cuts[a.Value]) / shape.Heads)
		if i < 3 {
			c = geo.kv.times(shape.KeyDim)
		}
		v, err := s.inPart(a.Value, c)
		if err != nil {
			return err
		}
		op.Args[i].Value = v
	}
	if slopes := op.Floats("slopes"); slopes != nil {
		op.SetAttr("slopes", slopesOf(slopes, geo.q))
	}
	op.SetAttr("heads", geo.q.width())
	op.SetAttr("key_heads", geo.kv.width())
	s.cuts[op.Result()] = geo.q.times(shape.ValueDim)
	return nil
}

// columnwise continues with each rank's columns of a convolution or a token shift.
func (s *sharder) columnwise(op *ir.Op) error {
	c := s.cuts[op.Args[1].Value]
	s.state(op, 0, func(f *ir.Field) { f.Shape[len(f.Shape)-1] = c.width() })
	for i, a := range op.Args {
		if a.Kind != ir.Weight {
			continue
		}
		w, err := s.part(a, "part_cols", c)
		if err != nil {
			return err
		}
		op.Args[i] = w
	}
	s.cuts[op.Result()] = c
	return nil
}

// ownRecurrent narrows an op on a fixed-size state to the columns of one rank.
func ownRecurrent(op, out *ir.Op, tpRank int) {
	f := &out.Args[0].State.Fields[0]
	if op.Def != ops.LinearRecurrence {
		if len(out.Args) > 1 && op.Def != ops.SelectiveScan && op.Def != ops.PoolRows {
			f.Shape[len(f.Shape)-1] = out.Args[1].Type.Cols()
		}
		return
	}
	heads, own := op.Int("heads"), out.Args[3].Type.Cols()/f.Shape[2]
	f.Shape[0] = own
	out.SetAttr("heads", own)
	out.SetAttr("key_heads", out.Args[1].Type.Cols()/f.Shape[1])
	if slopes := op.Floats("slopes"); len(slopes) > heads { // of all ranks
		out.SetAttr("slopes", slices.Clone(slopes[tpRank*heads:][:own]))
	}
}
