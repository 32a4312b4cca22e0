package passes

import (
	"maps"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// AddAdapters lets adapters that are loaded at run time change matmuls.
var AddAdapters = &Pass{
	Name:  "add-adapters",
	Brief: "lets LoRA adapters join",
	Doc: "Adds the op lora after each matmul with a weight whose rows are rows of stored matrices. It reads the matmul's input before rounding. " +
		"Without an adapter it returns its argument. Weights that only propose tokens have none, nor have those of a stored matrix that is used otherwise too: " +
		"by experts, or to compute another weight.",
	Run: addAdapters,
}

func addAdapters(_ *Env, m *ir.Module) error {
	names := ir.NewNames(m)
	able := adaptable(m)
	for _, g := range m.Graphs {
		for _, b := range g.Blocks() {
			for i := 0; i < len(b.Ops); i++ {
				op := b.Ops[i]
				if op.Def != ops.Matmul || op.Int("slices") > 1 || op.Result().Role() == "sequences" || i+1 < len(b.Ops) && b.Ops[i+1].Def == ops.Lora {
					continue
				}
				var which []int // of the parts of its weight
				parts := partsOf(m, op.Args[1].Value)
				for k, part := range parts {
					if able[part] {
						which = append(which, k)
					}
				}
				if len(which) == 0 {
					continue
				}
				var attrs ir.Attrs
				if len(which) < len(parts) {
					attrs.Set("parts", which)
				}
				if err := addAdapter(g, b, i, attrs, names); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addAdapter adds the op after matmul i of a block.
func addAdapter(g *ir.Graph, b *ir.Block, i int, attrs ir.Attrs, names *ir.Names) error {
	op := b.Ops[i]
	x, y := op.Args[0].Value, op.Result()
	if x.Op != nil && x.Op.Def == ops.QuantizeAct {
		x = x.Op.Args[0].Value
	}
	lora, err := ir.NewOp(ops.Lora, []ir.Arg{ir.A(y), ir.A(x), op.Args[1]}, attrs, names.Fresh(y.Name+"_lora"))
	if err != nil {
		return err
	}
	lora.Pos = op.Pos
	g.ReplaceUses(y, lora.Result())
	lora.Args[0].Value = y
	b.Insert(i+1, lora)
	y.Name, lora.Result().Name = names.Fresh(y.Name+"_base"), y.Name
	return nil
}

// adaptable returns the weights, before merging, to which adapters can add: those of matmuls
// whose rows are rows of stored matrices. All uses of these matrices must be such matmuls,
// except lookups in a table that is the head's matrix too, and those that only propose
// tokens.
func adaptable(m *ir.Module) map[*ir.Value]bool {
	drafts := draftWeights(m)
	able, otherwise := map[*ir.Value]bool{}, map[string]bool{}
	for _, g := range m.Graphs {
		for op := range g.All() {
			for _, a := range op.Args {
				switch w := a.Value; {
				case w.Kind != ir.Weight || w.Transform == nil || drafts[w] || op.Def == ops.Embed || op.Def == ops.Lora:
				case op.Def == ops.Matmul && op.Int("slices") == 1 && selectsRows(m, w.Transform):
					for _, part := range partsOf(m, w) {
						able[part] = true
					}
				default:
					for _, name := range sourcesOf(m, w.Transform) {
						otherwise[name] = true
					}
				}
			}
		}
	}
	maps.DeleteFunc(able, func(w *ir.Value, _ bool) bool {
		return slices.ContainsFunc(sourcesOf(m, w.Transform), func(name string) bool { return otherwise[name] })
	})
	return able
}

// sourcesOf returns the stored tensors that a transform reads, also through other weights.
func sourcesOf(m *ir.Module, r *tensor.Transform) (list []string) {
	switch r.Op {
	case "source":
		return []string{r.Name}
	case "weight":
		return sourcesOf(m, m.Weight(r.Name).Transform)
	}
	for _, a := range r.Args {
		list = append(list, sourcesOf(m, a)...)
	}
	return list
}

// selectsRows reports whether a transform only selects, orders and scales rows and
// columns of stored matrices.
func selectsRows(m *ir.Module, r *tensor.Transform) bool {
	switch r.Op {
	case "source":
		return true
	case "weight":
		return selectsRows(m, m.Weight(r.Name).Transform)
	case "concat", "interleave", "rows", "cols", "part_rows", "part_cols", "transpose", "permute_rows", "group_rows", "scale", "quantize", "quantize_sparse":
		for _, a := range r.Args {
			if !selectsRows(m, a) {
				return false
			}
		}
		return true
	}
	return false
}
