package ir

import "slices"

// inside returns the nearest enclosing region of the given kind, or nil.
func (s *scope) inside(def *OpDef) *Op {
	for _, r := range slices.Backward(s.regions) {
		if r.Def == def {
			return r
		}
	}
	return nil
}

// placement checks that the op is allowed in its enclosing regions.
func (s *scope) placement(o *Op) {
	if fuse := s.inside(Fuse); fuse != nil && (o.Def.Is(HasBody) || o.Def.Is(Collective)) {
		s.complain(o, "is not allowed in a fuse region")
	}
	par := s.inside(Par)
	switch {
	case o.Def.Is(Collective) && par == nil && o.Def.Attr("ranks") != nil && !o.Has("ranks"):
		s.complain(o, "a collective outside a par region must state the number of ranks")
	case o.Def.Is(Collective) && par != nil && o.Def.Attr("ranks") == nil:
		s.complain(o, "is not allowed in a par region")
	case par != nil && o.Def.Is(Collective) && o.Def.Attr("ranks") != nil && o.Has("ranks") && o.Int("ranks") != par.Int("ranks"):
		s.complain(o, "ranks=%d in a par region of %d", o.Int("ranks"), par.Int("ranks"))
	case o.Def.Name == "rank_cols" && par == nil:
		s.complain(o, "is outside a par region")
	case o.Def.Name == "rank_cols" && o.Has("bounds") && len(o.Ints("bounds")) != 2*par.Int("ranks"):
		s.complain(o, "bounds has %d numbers for %d ranks", len(o.Ints("bounds")), par.Int("ranks"))
	case o.Def.Name == "attention" && o.Has("alibi") && o.Has("heads") && !slopesFit(o, "alibi", par):
		s.complain(o, "alibi has %d slopes for %d heads", len(o.Floats("alibi")), o.Int("heads"))
	case o.Def.Name == "linear_recurrence" && o.Has("slopes") && o.Has("heads") && !slopesFit(o, "slopes", par):
		s.complain(o, "slopes has %d numbers for %d heads", len(o.Floats("slopes")), o.Int("heads"))
	case o.Def == Par && par != nil:
		s.complain(o, "nested par regions")
	case o.Def == Par && o.Has("ranks") && (o.Int("ranks") < 1 || o.Int("ranks") > 1024):
		s.complain(o, "%d ranks, expected 1 to 1024", o.Int("ranks"))
	}
	if o.Def == Fuse && o.Body != nil {
		s.fuse(o)
	}
}

// slopesFit reports whether an attribute has one slope per head, or, in a TP group, one
// slope per head of every rank.
func slopesFit(o *Op, attr string, par *Op) bool {
	n := len(o.Floats(attr))
	return n == o.Int("heads") || par != nil && n == o.Int("heads")*par.Int("ranks")
}

// fuse checks the structure of a fuse region: row ops, then one root, then ops that
// read only the root's output tile.
func (s *scope) fuse(o *Op) {
	var root *Op
	for _, in := range o.Body.Ops {
		switch {
		case in.Def == nil:
			return
		case in.Def.Is(Root) && root != nil:
			s.complain(in, "second root in a fuse region, after %s", opName(root))
		case in.Def.Is(Root):
			root = in
		case root == nil && !in.Def.Is(RowWise):
			s.complain(in, "precedes the root of a fuse region but is not row-wise")
		case root != nil && !FitsEpilogue(in):
			s.complain(in, "follows the root of a fuse region but reads more than the root's output tile")
		}
	}
	if root == nil {
		s.complain(o, "fuse region without a root (matmul, attention, …)")
	}
}

// FitsEpilogue reports whether an op may follow the root of a fuse region: it reads
// only the output tile, or it is a per-head norm.
func FitsEpilogue(o *Op) bool {
	if o.Def.Is(TileLocal) {
		return true
	}
	return o.Def.Is(RowWise|PerHead) && o.Int("heads") > 1
}

// perLayer checks the length of lists with one number per iteration.
func (s *scope) perLayer(o *Op) {
	for _, a := range o.Attrs {
		d := o.Def.Attr(a.Name)
		if d == nil || d.Kind != PerLayerInt && d.Kind != PerLayerFloat {
			continue
		}
		n := 0
		switch v := a.Val.(type) {
		case []int:
			n = len(v)
		case []float64:
			n = len(v)
		default:
			continue
		}
		rep := s.inside(Repeat)
		if rep == nil {
			s.complain(o, "attribute %s is a list, but the op is not in a repeat", a.Name)
		} else if want := rep.Int("hi") - rep.Int("lo"); n != want {
			s.complain(o, "attribute %s has %d entries for %d iterations", a.Name, n, want)
		}
	}
}
