package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
)

// A Rank is the program of one device of a partitioned module: an ordinary
// module without par regions. Its exchanges are ordinary ops, and it sends and
// receives the values that cross from one group of layers to another.
type Rank struct {
	Module *ir.Module
	Device string
	Stage  int // pipeline stage
	TPRank int // rank within its TP group
	TPSize int
	Lo, Hi int               // decoder layers lo ≤ l < hi
	Of     map[string]string // weight of Module → the weight of the whole module that it is, or is a part of
}

// Project returns the program of each rank of a module that the pass partition
// has placed. Ranks are numbered stage by stage, and within a stage by TP rank.
// A value that depends on no layer, such as a RoPE table, is computed on every
// stage that uses it. Any other value is sent to the stages that use it.
func Project(m *ir.Module, groups [][]Device) ([]*Rank, error) {
	tpSize := len(groups[0])
	ranks := make([]*Rank, len(groups)*tpSize)
	for tpRank := range tpSize {
		p := &projector{src: m, tpRank: tpRank, tpSize: tpSize, home: map[*ir.Value]int{}}
		for i, g := range groups {
			if len(g) != tpSize {
				return nil, fmt.Errorf("device groups of %d and %d ranks: all groups need the same size", tpSize, len(g))
			}
			p.stages = append(p.stages, newStage(p, i, g))
		}
		for _, g := range m.Graphs {
			if err := p.graph(g); err != nil {
				return nil, fmt.Errorf("graph %s: %w", g.Name, err)
			}
		}
		if err := p.together(); err != nil {
			return nil, err
		}
		for i, s := range p.stages {
			r, err := s.finish()
			if err != nil {
				return nil, fmt.Errorf("rank %d: %w", s.rank, err)
			}
			ranks[i*tpSize+tpRank] = r
		}
	}
	return ranks, nil
}

// A projector builds the programs of one TP rank of all stages together, op by
// op, so that a send and its recv are created together.
type projector struct {
	src    *ir.Module
	tpRank int
	tpSize int
	stages []*stage
	home   map[*ir.Value]int // stage that computes a value; absent for values without layers
}

// anywhere is the home of values that depend on no layer.
const anywhere = -1

func (p *projector) homeOf(v *ir.Value) int {
	if h, ok := p.home[v]; ok {
		return h
	}
	return anywhere
}

func (p *projector) graph(g *ir.Graph) error {
	if g.Name == ir.DraftGraph {
		return p.draft(g)
	}
	last := len(p.stages) - 1
	for _, in := range g.Inputs {
		if len(in.Type.Shape) > 1 { // the result of another graph
			p.home[in] = last
		}
	}
	for i, s := range p.stages {
		s.open(g, i == last)
	}
	for _, op := range g.Body.Ops {
		if err := p.op(op); err != nil {
			return fmt.Errorf("%s: %w", where(op), err)
		}
	}
	for _, y := range g.Body.Yield {
		v, err := p.fetch(y, last)
		if err != nil {
			return err
		}
		p.stages[last].body.Yield = append(p.stages[last].body.Yield, v)
	}
	return nil
}

// op places one op of a graph's body.
func (p *projector) op(op *ir.Op) error {
	if op.Def == ir.Repeat {
		return p.repeat(op)
	}
	at := anywhere
	for _, v := range captures(op) {
		at = max(at, p.homeOf(v))
	}
	if at == anywhere && !op.Def.Is(ir.Writes) {
		return nil // computed on each stage that uses it
	}
	at = max(at, 0)
	for _, r := range op.Results {
		p.home[r] = at
	}
	return p.emit(op, at)
}

// emit adds an op of a graph's body to the program of a stage.
func (p *projector) emit(op *ir.Op, at int) error {
	for _, v := range captures(op) {
		if _, err := p.fetch(v, at); err != nil {
			return err
		}
	}
	s := p.stages[at]
	return s.clone(s.body, op, scope{})
}

// fetch returns a value in the program of a stage; it computes it or sends it
// there if necessary.
func (p *projector) fetch(v *ir.Value, at int) (*ir.Value, error) {
	s := p.stages[at]
	if have := s.vals[v]; have != nil {
		return have, nil
	}
	if home := p.homeOf(v); home != anywhere {
		return p.send(v, home, at)
	}
	if v.Op == nil {
		return nil, fmt.Errorf("bug: %s has no definition", v)
	}
	if err := p.emit(v.Op, at); err != nil {
		return nil, err
	}
	return s.vals[v], nil
}

// send transfers a value from one stage to another.
func (p *projector) send(v *ir.Value, from, to int) (*ir.Value, error) {
	a, b := p.stages[from], p.stages[to]
	got, err := b.receive(a.vals[v], v, a.rank)
	if err != nil {
		return nil, err
	}
	b.vals[v] = got
	return got, a.add(a.body, opSend, []ir.Arg{ir.A(a.vals[v])}, ir.Attrs{{Name: "to", Val: b.rank}})
}

// repeat runs each stage's layers there, one stage after another.
func (p *projector) repeat(op *ir.Op) error {
	lo, hi := op.Int("lo"), op.Int("hi")
	carried := make([]*ir.Value, len(op.Args)) // source values that the next part starts from
	for i, a := range op.Args {
		carried[i] = a.Value
	}
	for at := lo; at < hi; {
		stage, err := p.stageOf(op, at)
		if err != nil {
			return err
		}
		end := at + 1
		for end < hi {
			if next, err := p.stageOf(op, end); err != nil || next != stage {
				break
			}
			end++
		}
		if err := p.piece(op, stage, at, end, carried); err != nil {
			return err
		}
		for i, r := range op.Results {
			p.home[r] = stage
			carried[i] = r
		}
		at = end
	}
	for i, s := range p.stages { // earlier stages have the results of other layers
		for _, r := range op.Results {
			if i != p.homeOf(r) {
				delete(s.vals, r)
			}
		}
	}
	return nil
}

// piece runs layers lo to hi on one stage.
func (p *projector) piece(op *ir.Op, stage, lo, hi int, carried []*ir.Value) error {
	s := p.stages[stage]
	var args []ir.Arg
	for _, v := range carried {
		got, err := p.fetch(v, stage)
		if err != nil {
			return err
		}
		args = append(args, ir.A(got))
	}
	for _, v := range captures(op) {
		if !slices.ContainsFunc(op.Args, func(a ir.Arg) bool { return a.Value == v }) || bodyReads(op, v) {
			if _, err := p.fetch(v, stage); err != nil {
				return err
			}
		}
	}
	return s.layers(op, args, lo, hi)
}

// bodyReads reports whether the body of a region reads a value itself.
func bodyReads(op *ir.Op, v *ir.Value) bool {
	for o := range op.Body.All() {
		for _, a := range o.Args {
			if a.Value == v {
				return true
			}
		}
	}
	return slices.Contains(op.Body.Yield, v)
}

// stageOf returns the stage of a layer, from the annotation of its repeat.
func (p *projector) stageOf(op *ir.Op, layer int) (int, error) {
	if len(p.stages) == 1 {
		return 0, nil
	}
	n := op.Annotations.Get("on")
	if n == nil {
		return 0, fmt.Errorf("layers %d..%d are not placed on %d device groups", op.Int("lo"), op.Int("hi"), len(p.stages))
	}
	name := n.Word(layer)
	for i, s := range p.stages {
		if s.group == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("layer %d is on %q, which is not a device group", layer, name)
}

// captures lists the outside values that an op reads: its arguments and those
// of the ops in its body.
func captures(op *ir.Op) []*ir.Value {
	inside := map[*ir.Value]bool{}
	var out []*ir.Value
	read := func(v *ir.Value) {
		if v.Kind != ir.Weight && v.Kind != ir.State && !inside[v] && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	for _, a := range op.Args {
		read(a.Value)
	}
	if op.Body == nil {
		return out
	}
	for _, v := range op.Body.Params {
		inside[v] = true
	}
	for o := range op.Body.All() {
		if o.Body != nil {
			for _, v := range o.Body.Params {
				inside[v] = true
			}
		}
		for _, r := range o.Results {
			inside[r] = true
		}
	}
	for o := range op.Body.All() {
		for _, a := range o.Args {
			read(a.Value)
		}
	}
	for _, y := range op.Body.Yield {
		read(y)
	}
	return out
}

// groupName is the name of a group in the annotation !on.
func groupName(g []Device) string {
	var names []string
	for _, d := range g {
		names = append(names, d.Name)
	}
	return strings.Join(names, "&")
}
