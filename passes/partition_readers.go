package passes

import (
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// A role classifies a projection's columns by their readers.
type role struct {
	kind roleKind
	geo  *geometry // of queries and keys
}

type roleKind int

const (
	needed roleKind = iota // some reader needs whole rows
	hidden                 // columns between two matmuls, each processed independently
	query                  // query heads
	key                    // key or value heads
)

// readers finds the uses of values.
type readers struct {
	uses map[*ir.Value][]ir.Use
	geo  map[*ir.Value]*geometry
}

// role returns the common role of a value's columns in all its uses.
func (r *readers) role(v *ir.Value, depth int) role {
	us := r.uses[v]
	if len(us) == 0 || depth > 12 {
		return role{}
	}
	var out role
	for i, u := range us {
		got := r.use(v, u, depth)
		if got.kind == needed || i > 0 && (got.kind != out.kind || got.geo != nil && got.geo.heads != out.geo.heads) {
			return role{}
		}
		out = got
	}
	return out
}

func (r *readers) use(v *ir.Value, u ir.Use, depth int) role {
	if u.Op == nil {
		return role{}
	}
	switch op := u.Op; {
	case op.Def.Name == "matmul" && op.Int("slices") == 1:
		return role{kind: hidden}
	case op.Def.Name == "kv_append" && r.geo[op.Args[0].Value] != nil:
		return role{key, r.geo[op.Args[0].Value]}
	case op.Def.Name == "attention" && u.Arg == 0 && r.geo[op.Args[1].Value] != nil:
		return role{query, r.geo[op.Args[1].Value]}
	case op.Def == ops.LinearRecurrence && r.geo[op.Args[0].Value] != nil:
		if u.Arg < 3 {
			return role{key, r.geo[op.Args[0].Value]}
		}
		return role{query, r.geo[op.Args[0].Value]}
	case op.Def == ops.ShortConv || op.Def == ops.TokenShift:
		return r.role(op.Results[0], depth+1)
	case r.gated(v, op) != nil:
		return role{query, r.gated(v, op)}
	case op.Def.Is(ir.Elementwise):
		for _, a := range op.Args {
			if a.Value != v && a.Kind == ir.Carry {
				return role{} // the residual
			}
		}
		return r.role(op.Results[0], depth+1)
	case op.Def.Attr("heads") != nil && op.Def.Name != "attention" && u.Arg == 0 && op.Int("heads") > 1:
		got := r.role(op.Results[0], depth+1)
		if got.kind == hidden && r.geo != nil {
			return role{} // they could be divided within a head of the norm
		}
		return got
	}
	return role{}
}

// gated returns the heads by which ranks divide a value because the op multiplies it
// with the output of attention or of a recurrence; nil if it does not.
func (r *readers) gated(v *ir.Value, op *ir.Op) *geometry {
	if op.Def.Name != "mul" {
		return nil
	}
	for _, a := range op.Args {
		if m := mixerOf(a.Value); a.Value != v && m != nil {
			if m.Def.Name == "attention" {
				return r.geo[m.Args[1].Value]
			}
			return r.geo[m.Args[0].Value]
		}
	}
	return nil
}

// dividesAt reports whether the columns of a value reach matmuls independently of
// each other, except those of a head of a norm, which no rank has only a part of.
func (r *readers) dividesAt(v *ir.Value, c cut) bool {
	return r.role(v, 0).kind == hidden && r.wholeHeads(v, c)
}

func (r *readers) wholeHeads(v *ir.Value, c cut) bool {
	for _, u := range r.uses[v] {
		if u.Op.Def.Is(ir.PerHead) {
			each := v.Type.Cols() / u.Op.Int("heads")
			for _, part := range c {
				if part.Lo%each != 0 || part.Hi%each != 0 {
					return false
				}
			}
		}
		if u.Op.Def.Name != "matmul" && !r.wholeHeads(u.Op.Results[0], c) {
			return false
		}
	}
	return true
}
