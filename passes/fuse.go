package passes

import (
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/templates"
)

// FuseRegions groups each matmul with the row ops before it and those ops after
// it that need only its output tiles.
var FuseRegions = &Pass{
	Name:  "fuse-regions",
	Brief: "groups ops into one kernel each",
	Doc:   "Groups each matmul into a region with the row ops before it and the ops after it. Row ops that only matmuls read (norms, products and rounding) are cloned into each region. Ops after it join if they need only a tile of its output: bias, activation, gate·up, residual, rope, appending to the KV cache.",
	Run:   fuseRegions,
}

func fuseRegions(env *Env, m *ir.Module) error {
	f := &fuser{env: env, names: ir.NewNames(m)}
	for _, g := range m.Graphs {
		made := map[*ir.Block]bool{}
		for _, op := range g.FindOps("fuse") {
			made[op.Body] = true
		}
		for _, b := range g.Blocks() {
			if made[b] {
				continue
			}
			if err := f.block(g, b); err != nil {
				return err
			}
		}
	}
	return nil
}

type fuser struct {
	env   *Env
	names *ir.Names
}

func (f *fuser) block(g *ir.Graph, b *ir.Block) error {
	for _, root := range slices.Clone(b.Ops) {
		if root.Def.Name != "matmul" {
			continue
		}
		if err := f.region(g, b, root); err != nil {
			return err
		}
	}
	return nil
}

// region makes the region of one matmul, if there is anything to fuse.
func (f *fuser) region(g *ir.Graph, b *ir.Block, root *ir.Op) error {
	uses := ir.Uses(g)
	front := prologue(b, root, uses)
	tail := epilogue(b, root)
	if len(front)+len(tail) == 0 {
		return nil
	}
	body := &ir.Block{}
	f.cloneFront(front, root, tail, body)
	at := b.Index(root)
	inside := map[*ir.Op]bool{root: true}
	for _, op := range tail {
		inside[op] = true
	}
	body.Ops = append(body.Ops, root)
	body.Ops = append(body.Ops, tail...)
	names := f.yield(body, inside, uses)
	region, err := ir.NewRegion(ir.Fuse, nil, nil, body, names...)
	if err != nil {
		return err
	}
	region.Pos = root.Pos
	for i, y := range body.Yield {
		replaceOutside(g, region, y, region.Results[i])
	}
	b.Ops = slices.DeleteFunc(b.Ops, func(op *ir.Op) bool { return inside[op] })
	b.Insert(at, region)
	return nil
}

// yield lists the values of the region that are used outside, and gives their
// names to the region's results. Inside, the values get fresh names.
func (f *fuser) yield(body *ir.Block, inside map[*ir.Op]bool, uses map[*ir.Value][]ir.Use) []string {
	var names []string
	for _, op := range body.Ops {
		if !inside[op] {
			continue
		}
		for _, r := range op.Results {
			if slices.ContainsFunc(uses[r], func(u ir.Use) bool { return u.Op == nil || !inside[u.Op] }) {
				body.Yield = append(body.Yield, r)
				names = append(names, r.Name)
				r.Name = f.names.Fresh(r.Name + "_t")
			}
		}
	}
	return names
}

// replaceOutside redirects uses of a value outside the region to the region's
// result.
func replaceOutside(g *ir.Graph, region *ir.Op, from, to *ir.Value) {
	for _, b := range g.Blocks() {
		if b == region.Body {
			continue
		}
		for _, op := range b.Ops {
			if slices.Contains(region.Body.Ops, op) {
				continue
			}
			for i := range op.Args {
				if op.Args[i].Value == from {
					op.Args[i].Value = to
				}
			}
		}
		for i, y := range b.Yield {
			if y == from {
				b.Yield[i] = to
			}
		}
	}
}

// prologue returns the chain of row ops before the root, in order, that can be
// cloned into its region: only matmuls and such chains read them.
func prologue(b *ir.Block, root *ir.Op, uses map[*ir.Value][]ir.Use) []*ir.Op {
	var chain []*ir.Op
	v := root.Args[0].Value
	for v.Kind == ir.Result && b.Index(v.Op) >= 0 && inFront(v.Op) && onlyMatmuls(v, uses, 0) {
		if root.Int("slices") > 1 && v.Op.Def.Name != "quantize_act" {
			break // would be repeated for each slice
		}
		chain = append(chain, v.Op)
		v = v.Op.Args[0].Value
	}
	slices.Reverse(chain)
	return chain
}

// inFront reports whether an op is cheap enough to repeat for each matmul.
func inFront(op *ir.Op) bool {
	switch op.Def.Name {
	case "rmsnorm", "layernorm", "l2norm", "mul", "quantize_act", "scale":
		return true
	}
	return false
}

// onlyMatmuls reports whether every use of a value is a matmul's input,
// directly or through other prologue ops.
func onlyMatmuls(v *ir.Value, uses map[*ir.Value][]ir.Use, depth int) bool {
	for _, u := range uses[v] {
		switch {
		case u.Op == nil || depth > 4:
			return false
		case u.Op.Def.Name == "matmul" && u.Arg == 0, u.Op.Def == ops.Lora && u.Arg == 1:
		case inFront(u.Op) && u.Arg == 0 && onlyMatmuls(u.Op.Results[0], uses, depth+1):
		default:
			return false
		}
	}
	return true
}

// cloneFront copies the chain into the region and makes the root read the copy.
// An adapter in the tail reads the copy too. The originals die when their last matmul has its
// copy.
func (f *fuser) cloneFront(front []*ir.Op, root *ir.Op, tail []*ir.Op, body *ir.Block) {
	var prev *ir.Value
	for _, op := range front {
		original := op.Results[0]
		c := *op
		c.Args = slices.Clone(op.Args)
		c.Attrs = slices.Clone(op.Attrs)
		if prev != nil {
			c.Args[0] = ir.A(prev)
		}
		r := *op.Results[0]
		r.Op = &c
		r.Name = f.names.Fresh(r.Name)
		c.Results = []*ir.Value{&r}
		body.Ops = append(body.Ops, &c)
		prev = &r
		for _, behind := range tail {
			if behind.Def == ops.Lora && behind.Args[1].Value == original {
				behind.Args[1] = ir.A(prev)
			}
		}
	}
	if prev != nil {
		root.Args[0] = ir.A(prev)
	}
}

// epilogue extends the run of ops after the root while they are local to its
// tiles and their other arguments are available before the root.
func epilogue(b *ir.Block, root *ir.Op) []*ir.Op {
	var tail []*ir.Op
	at := b.Index(root)
	inside := map[*ir.Value]bool{root.Result(): true}
	for _, op := range b.Ops[at+1:] {
		if !readsAny(op, inside) || !ready(b, op, inside, at) {
			continue
		}
		if op.Def.Is(ir.Writes) && crossesState(b.Ops[at+1:], op, tail) {
			continue
		}
		grown := append(slices.Clone(tail), op)
		if _, err := templates.PlanTail(root, grown); err != nil {
			continue
		}
		tail = grown
		for _, r := range op.Results {
			inside[r] = true
		}
	}
	return useful(tail)
}

func readsAny(op *ir.Op, inside map[*ir.Value]bool) bool {
	return slices.ContainsFunc(op.Args, func(a ir.Arg) bool { return inside[a.Value] })
}

// ready reports whether all arguments of the op from outside the region are
// defined before place at of the block.
func ready(b *ir.Block, op *ir.Op, inside map[*ir.Value]bool, at int) bool {
	for _, a := range op.Args {
		if a.Kind != ir.Result || inside[a.Value] {
			continue
		}
		if i := b.Index(a.Op); i >= at {
			return false
		}
	}
	return true
}

// crossesState reports whether moving a write up to the region would pass
// another op on the same state.
func crossesState(between []*ir.Op, write *ir.Op, tail []*ir.Op) bool {
	for _, op := range between {
		if op == write {
			return false
		}
		if !slices.Contains(tail, op) && (op.Def.Is(ir.Reads) || op.Def.Is(ir.Writes)) && slices.ContainsFunc(op.Args, func(a ir.Arg) bool { return a.Value == write.Args[0].Value }) {
			return true
		}
	}
	return false
}

// useful drops a split at the end of an epilogue that does nothing else but adapters,
// because naming parts gains nothing.
func useful(tail []*ir.Op) []*ir.Op {
	for _, op := range tail {
		if op.Def.Name != "split" && op.Def != ops.Lora {
			return tail
		}
	}
	return slices.DeleteFunc(tail, func(op *ir.Op) bool { return op.Def.Name == "split" })
}
