package passes

import (
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// AddAdapters lets adapters that are loaded at run time change matmuls.
var AddAdapters = &Pass{
	Name:  "add-adapters",
	Brief: "lets LoRA adapters join",
	Doc: "Adds the op lora after each matmul with a weight whose rows are rows of stored matrices. It reads the matmul's input before rounding. " +
		"Without an adapter it returns its argument. Weights that only propose tokens, those of experts and those computed from several tensors have none.",
	Run: addAdapters,
}

func addAdapters(_ *Env, m *ir.Module) error {
	names, drafts := ir.NewNames(m), draftWeights(m)
	for _, g := range m.Graphs {
		for _, b := range g.Blocks() {
			for i := 0; i < len(b.Ops); i++ {
				op := b.Ops[i]
				if op.Def != ops.Matmul || op.Int("slices") > 1 || drafts[op.Args[1].Value] || !takesAdapters(m, op.Args[1].Value) {
					continue
				}
				if i+1 < len(b.Ops) && b.Ops[i+1].Def == ops.Lora {
					continue // of an earlier run
				}
				if err := addAdapter(g, b, i, names); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addAdapter adds the op after matmul i of a block.
func addAdapter(g *ir.Graph, b *ir.Block, i int, names *ir.Names) error {
	op := b.Ops[i]
	x, y := op.Args[0].Value, op.Result()
	if x.Op != nil && x.Op.Def == ops.QuantizeAct {
		x = x.Op.Args[0].Value
	}
	lora, err := ir.NewOp(ops.Lora, []ir.Arg{ir.A(y), ir.A(x), op.Args[1]}, nil, names.Fresh(y.Name+"_lora"))
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

// takesAdapters reports whether a weight's rows are rows of stored matrices.
func takesAdapters(m *ir.Module, w *ir.Value) bool {
	return w.Transform != nil && len(w.Type.Shape) == 2 && selectsRows(m, w.Transform)
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
