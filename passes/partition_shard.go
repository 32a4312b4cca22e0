package passes

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A sharder splits the bodies of repeats. A value is whole on every rank, divided
// by columns (cuts), or a partial sum on each rank (sums).
type sharder struct {
	env     *Env
	mod     *ir.Module
	n       int
	names   *ir.Names
	uses    map[*ir.Value][]ir.Use
	geo     map[*ir.Value]*geometry // of states that are divided by heads
	weights map[string]*ir.Value    // parts made so far, by transform
	split   map[*ir.Value]bool      // states that have an index for the rank
	columns map[stateColumns]*ir.Value

	// State of the current layer:
	out    *ir.Block
	layers ir.Range // none outside repeats
	cuts   map[*ir.Value]cut
	sums   map[*ir.Value]*sum
	now    map[*ir.Value]*ir.Value // current replacement of a value
	unit   int                     // columns of a block, the unit of division of hidden columns
	shares []float64               // of hidden columns
}

// layer moves the body into a par region and splits it op by op.
func (s *sharder) layer(rep *ir.Op) error {
	s.begin(rep)
	for _, op := range rep.Body.Ops {
		if err := s.op(op); err != nil {
			return fmt.Errorf("%s: %w", where(op), err)
		}
	}
	var names []string
	for _, y := range rep.Body.Yield {
		v, err := s.whole(y)
		if err != nil {
			return err
		}
		s.out.Yield = append(s.out.Yield, v)
		names = append(names, s.names.Fresh(v.Name))
	}
	var as ir.Attrs
	as.Set("ranks", s.n)
	par, err := ir.NewRegion(ir.Par, nil, as, s.out, names...)
	if err != nil {
		return err
	}
	rep.Body.Ops = []*ir.Op{par}
	rep.Body.Yield = par.Results
	return nil
}

func (s *sharder) begin(rep *ir.Op) {
	s.out, s.cuts, s.sums, s.now = &ir.Block{}, map[*ir.Value]cut{}, map[*ir.Value]*sum{}, map[*ir.Value]*ir.Value{}
	s.layers = ir.Range{Lo: rep.Int("lo"), Hi: rep.Int("hi")}
	s.unit = s.blockOf(rep.Body)
	s.shares = s.balance(rep.Body)
}

// op splits one op, depending on its arguments.
func (s *sharder) op(op *ir.Op) error {
	if op.Def.Name == "add" && s.postpone(op) {
		return nil
	}
	split := false
	for i, a := range op.Args {
		if a.Kind == ir.Weight || a.Kind == ir.State {
			continue
		}
		v, err := s.current(a.Value)
		if err != nil {
			return err
		}
		op.Args[i].Value = v
		split = split || s.cuts[v] != nil
	}
	var err error
	switch {
	case op.Def.Name == "matmul":
		return s.matmul(op)
	case op.Def.Name == "kv_append":
		err = s.append(op)
	case op.Def.Name == "attention" && s.geo[op.Args[1].Value] != nil:
		err = s.attention(op)
	case op.Def == ops.LinearRecurrence && s.geo[op.Args[0].Value] != nil:
		err = s.recurrence(op)
	case op.Def.Name == "experts":
		return s.experts(op)
	case !split:
	case op.Def == ops.ShortConv || op.Def == ops.TokenShift:
		err = s.columnwise(op)
	case op.Def.Is(ir.Elementwise):
		err = s.elementwise(op)
	case op.Def.Attr("heads") != nil && op.Def.Name != "attention" && s.cuts[op.Args[0].Value] != nil:
		err = s.perHead(op)
	default:
		err = fmt.Errorf("needs whole rows of a divided value")
	}
	if err != nil {
		return err
	}
	return s.emit(op)
}

func (s *sharder) emit(op *ir.Op) error {
	s.out.Ops = append(s.out.Ops, op)
	return op.Reinfer()
}

// add appends a new op and returns its result.
func (s *sharder) add(def *ir.OpDef, name string, as ir.Attrs, args ...ir.Arg) (*ir.Value, error) {
	op, err := ir.NewOp(def, args, as, s.names.Fresh(name))
	if err != nil {
		return nil, err
	}
	s.out.Ops = append(s.out.Ops, op)
	return op.Result(), nil
}

// matmul divides a weight among the ranks: by columns if the input is divided,
// so that results are partial sums, or by rows if all uses are divided.
func (s *sharder) matmul(op *ir.Op) error {
	w := op.Args[1]
	if c := s.cuts[op.Args[0].Value]; c != nil {
		if op.Int("slices") > 1 {
			return fmt.Errorf("a matmul of slices cannot be split by columns")
		}
		part, err := s.part(w, "part_cols", c)
		if err != nil {
			return err
		}
		op.Args[1] = part
		s.sums[op.Result()] = &sum{leaves: []*ir.Value{op.Result()}}
		return s.emit(op)
	}
	c := s.rows(op)
	if c == nil || c.whole(w.Type.Shape[0].N) {
		return s.emit(op)
	}
	part, err := s.part(w, "part_rows", c)
	if err != nil {
		return err
	}
	op.Args[1] = part
	s.cuts[op.Result()] = c
	return s.emit(op)
}

// rows returns the division of a projection's rows; nil if every rank needs
// all.
func (s *sharder) rows(op *ir.Op) cut {
	if op.Int("slices") > 1 {
		return nil
	}
	n := op.Args[1].Type.Shape[0].N
	switch r := (&readers{s.uses, s.geo}).role(op.Result(), 0); {
	case r.kind == hidden && n >= s.n:
		return s.hidden(n)
	case r.kind == query && n%r.geo.heads == 0:
		return r.geo.q.times(n / r.geo.heads)
	case r.kind == key && n%r.geo.kvHeads == 0:
		return r.geo.kv.times(n / r.geo.kvHeads)
	}
	return nil
}

// append writes each rank's heads of a state.
func (s *sharder) append(op *ir.Op) error {
	st := op.Args[0].Value
	geo := s.geo[st]
	if geo == nil {
		for _, a := range op.Args[1:] {
			if s.cuts[a.Value] != nil {
				return fmt.Errorf("%s is divided, the state is not", a.Value)
			}
		}
		return nil
	}
	for i, f := range st.State.Fields {
		width := f.Elems() / f.Shape[0]
		v, err := s.inPart(op.Args[i+1].Value, geo.kv.times(width))
		if err != nil {
			return err
		}
		op.Args[i+1].Value = v
	}
	s.state(op, 0, geo.narrow)
	return nil
}

// state makes, once, one state per rank of the state that is argument i of an op;
// narrow sets the shape of a field.
func (s *sharder) state(op *ir.Op, i int, narrow func(f *ir.Field)) {
	a := &op.Args[i]
	v := a.Value
	if a.Index == nil && (len(v.Count) == 0 || s.split[v] && len(v.Count) == 1) {
		a.Index = []ir.Index{} // one for all layers
	}
	a.Index = s.ofRank(a.Index)
	if s.split[v] {
		return
	}
	s.split[v] = true
	for i := range v.State.Fields {
		f := &v.State.Fields[i]
		f.Shape = slices.Clone(f.Shape)
		narrow(f)
	}
	v.Count = append(slices.Clone(v.Count), ir.Range{Lo: 0, Hi: s.n})
}

func (s *sharder) attention(op *ir.Op) error {
	geo := s.geo[op.Args[1].Value]
	s.state(op, 1, geo.narrow)
	shape := ops.AttentionShapeOf(op)
	q, err := s.inPart(op.Args[0].Value, geo.q.times(shape.HeadDim))
	if err != nil {
		return err
	}
	op.Args[0].Value = q
	for _, w := range []struct { // in the order of arguments, because weights are named in the order of their creation
		at  int
		how string
		cut cut
	}{{shape.Rel, "part_cols", geo.q}, {shape.RelKeys, "part_rows", geo.q.times(shape.HeadDim)}, {shape.RelQueries, "part_cols", geo.q.times(shape.HeadDim)}, {shape.Sinks, "part_rows", geo.q}} {
		if w.at == 0 {
			continue
		}
		if op.Args[w.at], err = s.part(op.Args[w.at], w.how, w.cut); err != nil {
			return err
		}
	}
	if slopes := op.Floats("alibi"); slopes != nil {
		op.SetAttr("alibi", slopesOf(slopes, geo.q))
	}
	op.SetAttr("heads", geo.q.width())
	op.SetAttr("kv_heads", geo.kv.width())
	s.cuts[op.Result()] = geo.q.times(shape.VDim)
	return nil
}

// slopesOf concatenates the slopes of each rank's heads.
func slopesOf(slopes []float64, q cut) []float64 {
	var out []float64
	for _, r := range q {
		out = append(out, slopes[r.Lo:r.Hi]...)
		out = append(out, make([]float64, q.width()-r.Len())...)
	}
	return out
}

// elementwise continues on divided values: weights and whole values are divided
// alike.
func (s *sharder) elementwise(op *ir.Op) error {
	var c cut
	for _, a := range op.Args {
		if c == nil {
			c = s.cuts[a.Value]
		}
	}
	for i, a := range op.Args {
		if a.Type.Cols() == 1 {
			continue // of the whole row
		}
		if a.Kind != ir.Weight {
			v, err := s.inPart(a.Value, c)
			if err != nil {
				return err
			}
			op.Args[i].Value = v
			continue
		}
		how := "part_cols"
		if len(a.Type.Shape) == 1 {
			how = "part_rows"
		}
		w, err := s.part(a, how, c)
		if err != nil {
			return err
		}
		op.Args[i] = w
	}
	s.cuts[op.Result()] = c
	return nil
}

// perHead continues with each rank's heads.
func (s *sharder) perHead(op *ir.Op) error {
	heads := op.Int("heads")
	each := cols(op.Args[0].Value, s.cuts[op.Args[0].Value]) / heads
	c := s.cuts[op.Args[0].Value]
	if op.Def.Name == "join_heads" && op.Int("b_heads") > 1 {
		b := op.Args[1].Value
		width := cols(b, s.cuts[b]) / heads
		v, err := s.inPart(b, c.times(width).over(each))
		if err != nil {
			return err
		}
		op.Args[1].Value = v
		op.SetAttr("b_heads", c.width()/each)
	}
	for i, a := range op.Args[1:] {
		if s.cuts[a.Value] != nil && op.Def.Name != "join_heads" {
			return fmt.Errorf("argument %d, %s, is divided", i+2, a.Value)
		}
	}
	before := op.Result().Type.Cols() / heads
	op.SetAttr("heads", c.width()/each)
	s.cuts[op.Result()] = c.times(before).over(each)
	return nil
}

// inPart returns each rank's part of a value.
func (s *sharder) inPart(v *ir.Value, c cut) (*ir.Value, error) {
	if have := s.cuts[v]; have != nil {
		if !have.same(c) {
			return nil, fmt.Errorf("%s is divided as %v, expected %v", v, have, c)
		}
		return v, nil
	}
	if c.whole(v.Type.Cols()) {
		return v, nil
	}
	var as ir.Attrs
	as.Set("bounds", c.bounds())
	p, err := s.add(ops.RankCols, v.Name+"_part", as, ir.A(v))
	if err == nil {
		s.cuts[p] = c
	}
	return p, err
}

// part returns the weight that holds one part per rank.
func (s *sharder) part(a ir.Arg, how string, c cut) (ir.Arg, error) {
	t := a.Type
	axis := 0
	if how == "part_cols" {
		axis = len(t.Shape) - 1
	}
	if len(t.Shape) == 1 {
		how = "part_rows"
	}
	shape := slices.Clone(t.Shape)
	shape[axis] = ir.N(c.width())
	r := &tensor.Transform{Op: how, Args: []*tensor.Transform{ir.RefTransform(a.Value)}, Nums: c.nums(t.Shape[axis].N)}
	count := slices.Clone(a.Count)
	if len(count) == 0 && s.layers.Len() > 0 { // one for all layers: the rank's index follows theirs
		count = []ir.Range{s.layers}
	}
	count = append(count, ir.Range{Lo: 0, Hi: s.n})
	return s.partAs(a, r, ir.T(t.Elem, shape...), count), nil
}

// partAs returns a weight with the transform of a part, created once.
func (s *sharder) partAs(a ir.Arg, r *tensor.Transform, t ir.Type, count []ir.Range) ir.Arg {
	id := fmt.Sprint(r, count)
	if s.weights[id] == nil {
		w := &ir.Value{Name: s.names.Fresh(a.Name + "_part"), Kind: ir.Weight, Type: t, Count: count, Transform: r}
		s.mod.Weights = append(s.mod.Weights, w)
		s.weights[id] = w
	}
	return ir.Arg{Value: s.weights[id], Index: s.ofRank(a.Index)}
}

// ofRank appends the rank's index to a written one.
func (s *sharder) ofRank(index []ir.Index) []ir.Index {
	if index == nil {
		return nil
	}
	depth := 0
	if s.layers.Len() > 0 {
		depth = 1
	}
	return append(slices.Clone(index), ir.RegionIndex(depth))
}
