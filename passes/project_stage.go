package passes

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

var (
	opSend = ops.Send
	opRecv = ops.Recv
)

// A stage is the unfinished program of one rank.
type stage struct {
	p       *projector
	number  int
	rank    int
	group   string // the name in annotations
	device  string
	mod     *ir.Module
	names   *ir.Names
	body    *ir.Block // of the current graph
	vals    map[*ir.Value]*ir.Value
	dims    map[*ir.Dim]*ir.Dim
	weights map[*ir.Value]*ir.Value
	of      map[string]string
	states  map[*ir.Value]*ir.Value
	reads   map[element]int        // elements of states that are read → a layer that reads them
	writes  map[element]bool       // elements that are written
	used    map[*ir.Value]ir.Range // elements of weights and states that are used
	lo, hi  int                    // layers of the current graph
}

func newStage(p *projector, number int, g []Device) *stage {
	return &stage{p: p, number: number, rank: number*p.tpSize + p.tpRank, group: groupName(g), device: g[p.tpRank].Name,
		mod: &ir.Module{Name: p.src.Name, Pos: p.src.Pos}, names: ir.NewNames(p.src),
		weights: map[*ir.Value]*ir.Value{}, of: map[string]string{}, states: map[*ir.Value]*ir.Value{}, reads: map[element]int{}, writes: map[element]bool{}, used: map[*ir.Value]ir.Range{}}
}

// A scope is the position of an op.
type scope struct {
	repeat *ir.Op // of the source
	lo, hi int    // the layers of it that the rank runs
	par    bool
}

// depth returns the number of indices of the regions.
func (sc scope) depth() int {
	n := 0
	if sc.repeat != nil {
		n++
	}
	if sc.par {
		n++
	}
	return n
}

// ranges returns the index ranges of the enclosing regions, restricted to the
// layers that the rank runs.
func (sc scope) ranges() []ir.Range {
	var out []ir.Range
	if sc.repeat != nil {
		out = append(out, ir.Range{Lo: sc.lo, Hi: sc.hi})
	}
	return out
}

// open begins a graph. Results of other graphs are an input only of the stage
// that reads them.
func (s *stage) open(g *ir.Graph, reads bool) {
	out := &ir.Graph{Name: g.Name, Pos: g.Pos, Body: &ir.Block{}}
	s.vals, s.dims = map[*ir.Value]*ir.Value{}, map[*ir.Dim]*ir.Dim{}
	for _, d := range g.Dims {
		s.dims[d] = &ir.Dim{Name: d.Name, Role: d.Role}
		out.Dims = append(out.Dims, s.dims[d])
	}
	for _, in := range g.Inputs {
		if len(in.Type.Shape) > 1 && !reads {
			continue
		}
		c := *in
		c.Type = s.typ(in.Type)
		s.vals[in] = &c
		out.Inputs = append(out.Inputs, &c)
	}
	s.body = out.Body
	if g.Name != ir.DraftGraph {
		s.lo, s.hi = 0, 0
	}
	s.mod.Graphs = append(s.mod.Graphs, out)
}

// typ returns a type with the dimensions of this program's graph.
func (s *stage) typ(t ir.Type) ir.Type {
	out := ir.Type{Elem: t.Elem}
	for _, n := range t.Shape {
		if d := s.dims[n.Dim]; d != nil {
			n.Dim = d
		}
		out.Shape = append(out.Shape, n)
	}
	return out
}

// add appends an op to a block.
func (s *stage) add(b *ir.Block, def *ir.OpDef, args []ir.Arg, attrs ir.Attrs, names ...string) error {
	op, err := ir.NewOp(def, args, attrs, names...)
	if err == nil {
		b.Ops = append(b.Ops, op)
	}
	return err
}

// receive appends the recv of a value of another rank, with its type there.
func (s *stage) receive(there, v *ir.Value, from int) (*ir.Value, error) {
	g := s.mod.Graphs[len(s.mod.Graphs)-1]
	rows := s.dims[v.Type.Rows().Dim]
	i := slices.IndexFunc(g.Inputs, func(in *ir.Value) bool { return in.Type.Rows().Dim == rows })
	if i < 0 {
		return nil, fmt.Errorf("%s cannot be sent: no input of the graph has the same number of rows", v)
	}
	attrs := ir.Attrs{{Name: "from", Val: from}, {Name: "cols", Val: there.Type.Cols()}}
	if err := s.add(s.body, opRecv, []ir.Arg{ir.A(g.Inputs[i])}, attrs, s.names.Fresh(v.Name)); err != nil {
		return nil, err
	}
	return s.body.Ops[len(s.body.Ops)-1].Result(), nil
}

// layers appends a range of layers of a repeat.
func (s *stage) layers(op *ir.Op, args []ir.Arg, lo, hi int) error {
	if s.hi == 0 {
		s.lo = lo
	}
	s.hi = hi
	body := &ir.Block{}
	sc := scope{repeat: op, lo: lo, hi: hi}
	for i, v := range op.Body.Params {
		c := &ir.Value{Name: v.Name, Kind: ir.Carry, Type: args[i].Type, Pos: v.Pos}
		s.vals[v] = c
		body.Params = append(body.Params, c)
	}
	for _, o := range op.Body.Ops {
		if err := s.clone(body, o, sc); err != nil {
			return err
		}
	}
	for _, y := range op.Body.Yield {
		body.Yield = append(body.Yield, s.vals[y])
	}
	var names []string
	for _, r := range op.Results {
		name := r.Name
		if s.vals[r] != nil {
			name = s.names.Fresh(name)
		}
		names = append(names, name)
	}
	rep, err := ir.NewRegion(ir.Repeat, args, ir.Attrs{{Name: "lo", Val: lo}, {Name: "hi", Val: hi}}, body, names...)
	if err != nil {
		return err
	}
	rep.Pos = op.Pos
	for i, r := range op.Results {
		s.vals[r] = rep.Results[i]
	}
	s.body.Ops = append(s.body.Ops, rep)
	return nil
}

// clone appends this rank's version of an op.
func (s *stage) clone(b *ir.Block, op *ir.Op, sc scope) error {
	switch {
	case op.Def == ir.Par:
		return s.unwrap(b, op, sc)
	case op.Def == ops.RankCols:
		return s.columns(b, op)
	}
	out := &ir.Op{Def: op.Def, Pos: op.Pos, Annotations: slices.Clone(op.Annotations)}
	for _, a := range op.Attrs {
		out.Attrs = append(out.Attrs, ir.Attr{Name: a.Name, Val: ofLayers(op, a, sc)})
	}
	for i := range op.Args {
		a, err := s.arg(op, i, sc)
		if err != nil {
			return err
		}
		out.Args = append(out.Args, a)
	}
	for _, r := range op.Results {
		c := &ir.Value{Name: r.Name, Kind: ir.Result, Op: out, Pos: r.Pos}
		out.Results = append(out.Results, c)
		s.vals[r] = c
	}
	if sc.par {
		if err := s.own(op, out); err != nil {
			return fmt.Errorf("%s: %w", where(op), err)
		}
	}
	if err := out.Reinfer(); err != nil {
		return fmt.Errorf("%s: %w", where(op), err)
	}
	b.Ops = append(b.Ops, out)
	return nil
}

// unwrap appends the ops of a par region.
func (s *stage) unwrap(b *ir.Block, op *ir.Op, sc scope) error {
	sc.par = true
	for _, o := range op.Body.Ops {
		if err := s.clone(b, o, sc); err != nil {
			return err
		}
	}
	for i, r := range op.Results {
		s.vals[r] = s.vals[op.Body.Yield[i]]
		if sc.repeat == nil {
			s.vals[r].Name = r.Name // outputs are found by name
		}
	}
	return nil
}

// ofLayers restricts an attribute to the layers that the rank runs.
func ofLayers(op *ir.Op, a ir.Attr, sc scope) any {
	d := op.Def.Attr(a.Name)
	if sc.repeat != nil && d != nil && (d.Kind == ir.PerLayerInt || d.Kind == ir.PerLayerFloat) {
		first := sc.repeat.Int("lo")
		switch v := a.Val.(type) {
		case []int:
			return slices.Clone(v[sc.lo-first : sc.hi-first])
		case []float64:
			return slices.Clone(v[sc.lo-first : sc.hi-first])
		}
	}
	switch v := a.Val.(type) {
	case []int:
		return slices.Clone(v)
	case []float64:
		return slices.Clone(v)
	}
	return a.Val
}

// arg returns argument i of an op on this rank.
func (s *stage) arg(op *ir.Op, i int, sc scope) (ir.Arg, error) {
	a := op.Args[i]
	// One more index selects the rank: that of the par region, the innermost.
	last := len(a.Index) - 1
	mine := sc.par && (a.Index == nil && op.IndexCount(i) == sc.depth() || last >= 0 && a.Index[last] == ir.RegionIndex(sc.depth()-1))
	out := ir.Arg{Index: slices.Clone(a.Index)}
	if mine && last >= 0 {
		out.Index = slices.Clip(out.Index[:last])
	}
	if len(out.Index) == 0 {
		out.Index = nil
	}
	switch a.Kind {
	case ir.Weight:
		w, err := s.weight(a.Value, mine, op.IndexCount(i))
		if err != nil {
			return out, err
		}
		out.Value = w
	case ir.State:
		out.Value = s.state(a.Value, mine)
		if err := s.touches(op, out, sc); err != nil {
			return out, err
		}
	default:
		if out.Value = s.vals[a.Value]; out.Value == nil {
			return out, fmt.Errorf("bug: %s is undefined here", a.Value)
		}
		return out, nil
	}
	switch {
	case len(out.Value.Count) == 0:
	case out.Index != nil:
		r, err := ir.IndexRange(out.Index[0], sc.ranges())
		if err != nil {
			return out, err
		}
		s.uses(out.Value, r)
	case sc.repeat != nil && op.IndexCount(i) > 0:
		s.uses(out.Value, ir.Range{Lo: sc.lo, Hi: sc.hi})
	}
	return out, nil
}

// uses records the used elements of a weight or state.
func (s *stage) uses(v *ir.Value, r ir.Range) {
	if old, ok := s.used[v]; ok {
		r = ir.Range{Lo: min(old.Lo, r.Lo), Hi: max(old.Hi, r.Hi)}
	}
	s.used[v] = r
}

// finish returns the rank, with only the used elements of each weight and
// state.
func (s *stage) finish() (*Rank, error) {
	for v, r := range s.used {
		v.Count[0] = r
	}
	ir.DCE(s.mod)
	if err := ir.Verify(s.mod); err != nil {
		return nil, fmt.Errorf("bug: the program is invalid: %w", err)
	}
	return &Rank{Module: s.mod, Device: s.device, Stage: s.number, TPRank: s.p.tpRank, TPSize: s.p.tpSize, Lo: s.lo, Hi: s.hi, Of: s.of}, nil
}
