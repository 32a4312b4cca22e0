package passes

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// MergeProjections joins matmuls with a common input into one.
var MergeProjections = &Pass{
	Name:  "merge-projections",
	Brief: "joins matmuls of one input",
	Doc:   "Joins the query, key and value projections of one input into one matmul with concatenated weight rows. Joins gate and up projections into one matmul with weight rows interleaved by panels of 16. Each input is then read and rounded once, and the product of gate and up needs only one tile.",
	Run:   mergeProjections,
}

func mergeProjections(env *Env, m *ir.Module) error {
	mg := &merger{env: env, mod: m, names: ir.NewNames(m), made: map[string]*ir.Value{}}
	for _, g := range m.Graphs {
		for _, b := range g.Blocks() {
			if err := mg.block(g, b); err != nil {
				return err
			}
		}
	}
	return nil
}

type merger struct {
	env   *Env
	mod   *ir.Module
	names *ir.Names
	made  map[string]*ir.Value // merged weights by transform
}

// block merges within one block: first gate and up pairs, then projections of
// attention.
func (mg *merger) block(g *ir.Graph, b *ir.Block) error {
	for i := 0; i < len(b.Ops); i++ {
		gate := b.Ops[i]
		if gate.Def.Name != "matmul" || gate.Int("slices") > 1 {
			continue
		}
		group := siblings(b, gate)
		uses := ir.Uses(g)
		if pair := gated(group, uses); pair != nil {
			if err := mg.merge(g, b, pair, "interleave", pair[0].Args[1].Name+"_"+pair[1].Args[1].Name); err != nil {
				return err
			}
			i--
			continue
		}
		var attn []*ir.Op
		for _, op := range group {
			if op.Args[1].Type.Shape[0].N%16 == 0 && (feedsMixer(op.Result(), uses, 0) || gatesMixer(op.Result(), uses)) {
				attn = append(attn, op)
			}
		}
		if len(attn) > 1 && attn[0] == gate {
			if err := mg.merge(g, b, attn, "concat", joined(attn)); err != nil {
				return err
			}
		}
	}
	return nil
}

// siblings lists the matmuls of the block, from gate on, with the same input
// and weight type.
func siblings(b *ir.Block, gate *ir.Op) []*ir.Op {
	var out []*ir.Op
	for _, op := range b.Ops[b.Index(gate):] {
		if op.Def.Name == "matmul" && op.Int("slices") == 1 && op.Args[0].Value == gate.Args[0].Value && sameKind(op.Args[1], gate.Args[1]) {
			out = append(out, op)
		}
	}
	return out
}

// sameKind reports whether two weights can be stacked: same type, same array
// shape, same index.
func sameKind(a, b ir.Arg) bool {
	if a.Type.Elem != b.Type.Elem || len(a.Count) != len(b.Count) || len(a.Index) != len(b.Index) {
		return false
	}
	for i := range a.Count {
		if a.Count[i] != b.Count[i] {
			return false
		}
	}
	for i := range a.Index {
		if a.Index[i].String() != b.Index[i].String() {
			return false
		}
	}
	return true
}

// gated returns the matmul that the first one's output is multiplied with, if
// only elementwise ops of one input are in between.
func gated(group []*ir.Op, uses map[*ir.Value][]ir.Use) []*ir.Op {
	first := group[0]
	n := first.Args[1].Type.Shape[0].N
	if n%16 != 0 {
		return nil
	}
	mul := product(first.Result(), uses)
	if mul == nil {
		return nil
	}
	for _, op := range group[1:] {
		if op.Args[1].Type.Shape[0].N == n && product(op.Result(), uses) == mul {
			return []*ir.Op{first, op}
		}
	}
	return nil
}

// product follows a value through elementwise ops with a single use to a mul of
// two computed values.
func product(v *ir.Value, uses map[*ir.Value][]ir.Use) *ir.Op {
	for range 8 {
		us := uses[v]
		if len(us) != 1 || us[0].Op == nil || !us[0].Op.Def.Is(ir.Elementwise) {
			return nil
		}
		op := us[0].Op
		if op.Def.Name == "mul" && op.Args[0].Kind != ir.Weight && op.Args[1].Kind != ir.Weight {
			return op
		}
		v = op.Result()
	}
	return nil
}

// feedsMixer reports whether a value reaches attention or a state through bias,
// norm and rope only.
func feedsMixer(v *ir.Value, uses map[*ir.Value][]ir.Use, depth int) bool {
	if depth > 8 {
		return false
	}
	for _, u := range uses[v] {
		switch {
		case u.Op == nil:
			return false
		case u.Op.Def.Step != nil, u.Op.Def.Name == "kv_append", u.Op.Def.Name == "select_rows", u.Op.Def.Name == "attention" && u.Arg == 0:
			return true
		case u.Op.Def.Is(ir.Elementwise), u.Op.Def.Name == "rope", u.Op.Def.Attr("heads") != nil && u.Op.Def.Is(ir.RowWise):
			if feedsMixer(u.Op.Results[0], uses, depth+1) {
				return true
			}
		}
	}
	return false
}

// gatesMixer reports whether a value is the gate on the output of attention or of
// a recurrence: the two meet in a mul.
func gatesMixer(v *ir.Value, uses map[*ir.Value][]ir.Use) bool {
	mul := product(v, uses)
	return mul != nil && (mixerOf(mul.Args[0].Value) != nil || mixerOf(mul.Args[1].Value) != nil)
}

// mixerOf returns the attention or the op on a fixed-size state whose output a
// value is, but for elementwise ops and norms; else nil.
func mixerOf(v *ir.Value) *ir.Op {
	for range 8 {
		switch op := v.Op; {
		case op == nil:
			return nil
		case op.Def.Name == "attention" || op.Def.Step != nil:
			return op
		case op.Def.Is(ir.Elementwise) || op.Def.Is(ir.PerHead):
			v = op.Args[0].Value
		default:
			return nil
		}
	}
	return nil
}

func joined(ops []*ir.Op) string {
	name := ""
	for i, op := range ops {
		if i > 0 {
			name += "_"
		}
		name += op.Args[1].Name
	}
	return name
}

// merge replaces the matmuls by one matmul and a split, in place of the first.
func (mg *merger) merge(g *ir.Graph, b *ir.Block, ops []*ir.Op, how, name string) error {
	first := ops[0]
	w, sizes := mg.joint(ops, how, name)
	mm, err := ir.NewOp(first.Def, []ir.Arg{first.Args[0], {Value: w, Index: first.Args[1].Index}}, nil, mg.names.Fresh(name+"_y"))
	if err != nil {
		return fmt.Errorf("merging %s: %w", name, err)
	}
	mm.Pos = first.Pos
	var as ir.Attrs
	as.Set("sizes", sizes)
	if how == "interleave" {
		as.Set("panel", 16)
	}
	var outs []string
	for _, op := range ops {
		outs = append(outs, mg.names.Fresh(op.Result().Name))
	}
	sp, err := ir.NewOp(mg.env.Ops.Lookup("split"), []ir.Arg{ir.A(mm.Result())}, as, outs...)
	if err != nil {
		return fmt.Errorf("merging %s: %w", name, err)
	}
	sp.Pos = first.Pos
	b.Insert(b.Index(first), mm, sp)
	for i, op := range ops {
		g.ReplaceUses(op.Result(), sp.Results[i])
		b.Remove(b.Index(op))
		sp.Results[i].Name = op.Result().Name
	}
	return nil
}

// joint returns the merged weight of several matmuls and the row count of each.
// Layers in different loops share one merged weight.
func (mg *merger) joint(ops []*ir.Op, how, name string) (w *ir.Value, sizes []int) {
	like := ops[0].Args[1]
	transform := &tensor.Transform{Op: how}
	rows := 0
	for _, op := range ops {
		n := op.Args[1].Type.Shape[0].N
		rows += n
		sizes = append(sizes, n)
		transform.Args = append(transform.Args, &tensor.Transform{Op: "weight", Name: op.Args[1].Name})
	}
	if w := mg.made[transform.String()]; w != nil {
		return w, sizes
	}
	w = &ir.Value{Name: mg.names.Fresh(name), Kind: ir.Weight, Count: like.Count, Transform: transform, Type: ir.T(like.Type.Elem, ir.N(rows), like.Type.Shape[1])}
	mg.made[transform.String()] = w
	mg.mod.Weights = append(mg.mod.Weights, w)
	return w, sizes
}
