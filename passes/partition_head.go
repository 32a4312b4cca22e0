package passes

import (
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// heads splits the matmuls of the output head that have more outputs than inputs
// by rows, and gathers their columns. If the rows cannot be divided evenly,
// some are computed by two ranks, so that all ranks exchange the same amount.
func (s *sharder) heads(g *ir.Graph) error {
	s.layers = ir.Range{}
	s.cuts, s.sums, s.now = map[*ir.Value]cut{}, map[*ir.Value]*sum{}, map[*ir.Value]*ir.Value{}
	heads := headMatmuls(g)
	for i, op := range g.Body.Ops {
		if !heads[op] || op.Int("slices") > 1 || len(op.Args[1].Count) > 0 {
			continue
		}
		n, k := op.Args[1].Type.Shape[0].N, op.Args[1].Type.Cols()
		if n <= k || n < s.n*s.n { // with fewer rows the last rank would have none of its own
			continue
		}
		s.out = &ir.Block{}
		c := alike(n, s.n)
		w, err := s.part(op.Args[1], "part_rows", c)
		if err != nil {
			return err
		}
		part, err := s.add(op.Def, op.Result().Name+"_part", nil, op.Args[0], w)
		if err != nil {
			return err
		}
		var as ir.Attrs
		as.Set("ranks", s.n)
		gather := slices.Clone(as)
		if !c.equal(n) {
			gather.Set("bounds", c.bounds())
		}
		all, err := s.add(ops.AllGather, op.Result().Name+"_all", gather, ir.A(part))
		if err != nil {
			return err
		}
		s.out.Yield = []*ir.Value{all}
		par, err := ir.NewRegion(ir.Par, nil, as, s.out, s.names.Fresh(op.Result().Name))
		if err != nil {
			return err
		}
		par.Pos = op.Pos
		g.ReplaceUses(op.Result(), par.Result())
		g.Body.Ops[i] = par
		par.Result().Name = op.Result().Name
	}
	return nil
}

// alike cuts size into n ranges of one length. If size is not divisible, they
// are whole panels and overlap.
func alike(size, n int) cut {
	if size%n == 0 {
		return evenly(size, n)
	}
	width := (size + n - 1) / n
	if panels := (width + 15) / 16 * 16; panels*(n-1) < size {
		width = panels
	}
	var c cut
	for i := range n {
		lo := min(i*width, size-width)
		c = append(c, ir.Range{Lo: lo, Hi: lo + width})
	}
	return c
}
