package passes

import (
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// blockOf returns the block size of the weights in a body, in columns.
func (s *sharder) blockOf(b *ir.Block) int {
	unit := 1
	for op := range b.All() {
		for _, w := range matrices(op) {
			t := s.env.Types.Default
			if t == tensor.Invalid {
				t = tensor.ComputeType(w.Type.Elem)
			}
			unit = max(unit, t.Block())
		}
	}
	return unit
}

// balance returns each rank's share of the hidden columns. Shares are equal if
// ranks exchange both after attention and after the feed-forward network. If
// the two run in parallel and ranks exchange once, ranks with fewer heads get
// more columns, so that all have the same amount of work.
func (s *sharder) balance(b *ir.Block) []float64 {
	shares := make([]float64, s.n)
	for i := range shares {
		shares[i] = 1
	}
	heads, all, wide := s.work(b)
	if wide == 0 || inTurn(b) || slices.Min(heads) == slices.Max(heads) {
		return shares
	}
	for i := range shares {
		shares[i] = max((all/float64(s.n)-heads[i])/wide, 0.25/float64(s.n))
	}
	return shares
}

// inTurn reports whether the input of a matmul depends on another matmul's sum
// over heads, that is, whether an exchange is between them.
func inTurn(b *ir.Block) bool {
	after := map[*ir.Value]bool{}
	matmuls := map[*ir.Value]int{} // number of matmuls between heads and a value
	for _, op := range b.Ops {
		from, most := op.Def.Name == "attention" || op.Def == ops.LinearRecurrence, 0
		for _, a := range op.Args {
			from = from || after[a.Value]
			most = max(most, matmuls[a.Value])
		}
		if !from {
			continue
		}
		if op.Def.Name == "matmul" {
			most++
		}
		if most > 1 {
			return true
		}
		for _, r := range op.Results {
			after[r], matmuls[r] = true, most
		}
	}
	return false
}

// work counts the weights of a layer: those of each rank's heads, all of those,
// and those of hidden columns.
func (s *sharder) work(b *ir.Block) (heads []float64, all, wide float64) {
	heads = make([]float64, s.n)
	hiddens := map[int]bool{}
	r := &readers{s.uses, s.geo}
	share := func(c cut, each int) {
		for i, m := range c {
			heads[i] += float64(m.Len() * each)
			all += float64(m.Len() * each)
		}
	}
	for _, op := range b.Ops {
		switch op.Def.Name {
		case "matmul":
			n, k := op.Args[1].Type.Shape[0].N, op.Args[1].Type.Cols()
			switch got := r.role(op.Result(), 0); {
			case hiddens[k]:
				wide += float64(n * k)
			case got.kind == hidden:
				hiddens[n] = true
				wide += float64(n * k)
			case got.kind == query:
				share(got.geo.q, n/got.geo.heads*k)
			case got.kind == key:
				share(got.geo.kv, n/got.geo.kvHeads*k)
			}
		case "linear_recurrence":
			if g := s.geo[op.Args[0].Value]; g != nil && len(b.Params) > 0 {
				share(g.q, ops.RecurrenceShapeOf(op).ValueDim*b.Params[0].Type.Cols())
			}
		case "attention":
			if g := s.geo[op.Args[1].Value]; g != nil && len(b.Params) > 0 {
				share(g.q, ops.AttentionShapeOf(op).VDim*b.Params[0].Type.Cols())
			}
		}
	}
	return heads, all + wide, wide
}

// hidden divides hidden columns by shares, in whole blocks if possible, else in
// whole panels if possible.
func (s *sharder) hidden(size int) cut {
	if slices.Min(s.shares) == slices.Max(s.shares) && size%s.n == 0 && size/s.n%s.unit == 0 {
		return evenly(size, s.n)
	}
	for _, unit := range []int{s.unit, 32, 16} {
		if unit > 1 && size%unit == 0 && size/unit >= s.n {
			return byShares(size, unit, s.shares)
		}
	}
	return byShares(size, 1, s.shares)
}

// experts are distributed: each rank has some of them and computes the tokens
// routed to them. With fewer experts than ranks, each rank has a part of the
// hidden columns of all. The results are partial sums.
func (s *sharder) experts(op *ir.Op) error {
	shape := ops.ExpertsShapeOf(op)
	switch {
	case shape.Experts >= s.n:
		c := evenly(shape.Experts, s.n)
		r, err := s.inPart(op.Args[1].Value, c)
		if err != nil {
			return err
		}
		op.Args[1].Value = r
		for i, a := range op.Args[2:] {
			op.Args[i+2] = s.expertPart(a, "part_experts", c, ir.T(a.Type.Elem, a.Type.Shape...), c.width())
		}
	case shape.Hidden >= s.n && !op.Bool("biased"):
		c := s.hidden(shape.Hidden)
		for i, a := range op.Args[2:] {
			how, axis := "expert_rows", 0
			if i+2 == shape.Down {
				how, axis = "expert_cols", 1
			}
			sizes := slices.Clone(a.Type.Shape)
			sizes[axis] = ir.N(c.width())
			op.Args[i+2] = s.expertPart(a, how, c, ir.T(a.Type.Elem, sizes...), shape.Experts)
		}
	default:
		return s.emit(op)
	}
	s.sums[op.Result()] = &sum{leaves: []*ir.Value{op.Result()}}
	return s.emit(op)
}

// expertPart returns the weight that holds one part per rank; experts are its
// last index.
func (s *sharder) expertPart(a ir.Arg, how string, c cut, t ir.Type, experts int) ir.Arg {
	var nums []float64
	for _, n := range c.bounds() {
		nums = append(nums, float64(n))
	}
	r := &tensor.Transform{Op: how, Args: []*tensor.Transform{ir.RefTransform(a.Value)}, Nums: nums}
	last := len(a.Count) - 1
	count := append(slices.Clone(a.Count[:last]), ir.Range{Lo: 0, Hi: s.n}, ir.Range{Lo: 0, Hi: experts})
	return s.partAs(a, r, t, count)
}
