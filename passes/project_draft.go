package passes

import (
	"slices"

	"github.com/iflowc/iflowc/ir"
)

// draft assigns the graph that proposes tokens to rank 0 alone. Rank 0 samples
// tokens and therefore has the results of every step, whatever steps are in
// flight. On other ranks the graph is empty.
func (p *projector) draft(g *ir.Graph) error {
	for i, s := range p.stages {
		s.open(g, i == 0 && p.tpRank == 0)
	}
	if p.tpRank > 0 {
		return nil
	}
	s := p.stages[0]
	if len(p.stages) > 1 {
		s.foreign(g)
	}
	for _, op := range g.Body.Ops {
		if err := p.draftOp(op); err != nil {
			return err
		}
	}
	for _, y := range g.Body.Yield {
		s.body.Yield = append(s.body.Yield, s.vals[y])
	}
	return nil
}

// draftOp adds an op of the draft graph to the program of rank 0, which runs all layers
// of the graph.
func (p *projector) draftOp(op *ir.Op) error {
	if op.Def != ir.Repeat {
		return p.emit(op, 0)
	}
	var args []*ir.Value
	for _, a := range op.Args {
		args = append(args, a.Value)
	}
	return p.piece(op, 0, op.Int("lo"), op.Int("hi"), args)
}

// foreign adds inputs for all results of another graph if the graph reads any
// of them, in their order, because that graph yields nothing on this rank and a
// result is identified by its position among all of them.
func (s *stage) foreign(g *ir.Graph) {
	own := s.mod.Graphs[len(s.mod.Graphs)-1]
	var list []*ir.Value
	for _, other := range s.p.src.Graphs {
		if other == g || !slices.ContainsFunc(g.Inputs, func(in *ir.Value) bool { return other.Output(in.Name) >= 0 }) {
			continue
		}
		for _, y := range other.Body.Yield {
			in := own.Input(y.OutputName())
			if in == nil {
				in = &ir.Value{Name: y.OutputName(), Kind: ir.Input, Type: y.Type, Pos: y.Pos}
				in.Type.Shape = slices.Clone(y.Type.Shape)
				for i, n := range in.Type.Shape {
					if n.Dim != nil {
						in.Type.Shape[i].Dim = own.Dim(n.Dim.Role)
					}
				}
			}
			list = append(list, in)
		}
	}
	for _, in := range own.Inputs {
		if !slices.Contains(list, in) {
			list = append(list, in)
		}
	}
	own.Inputs = list
}
