package passes

import (
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// ExpandSlices replaces a matmul of slices by one matmul per slice if no kernel
// can write the results side by side.
var ExpandSlices = &Pass{
	Name:  "expand-slices",
	Brief: "makes a matmul of each odd slice",
	Doc:   "Replaces a matmul of slices by one matmul per slice and a concatenation if the slices' rows are not whole panels of 16, because kernels write whole panels.",
	Run:   expandSlices,
}

func expandSlices(env *Env, m *ir.Module) error {
	names := ir.NewNames(m)
	for _, g := range m.Graphs {
		for _, b := range g.Blocks() {
			for _, op := range slices.Clone(b.Ops) {
				if op.Def.Name != "matmul" || op.Int("slices") < 2 || op.Args[1].Type.Shape[0].N%16 == 0 {
					continue
				}
				if err := expand(env, g, b, op, names); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// expand replaces one matmul of slices.
func expand(env *Env, g *ir.Graph, b *ir.Block, op *ir.Op, names *ir.Names) error {
	var made []*ir.Op
	add := func(name string, args []ir.Arg, attrs ir.Attrs, results ...string) ([]*ir.Value, error) {
		o, err := ir.NewOp(env.Ops.Lookup(name), args, attrs, results...)
		if err != nil {
			return nil, err
		}
		o.Pos = op.Pos
		made = append(made, o)
		return o.Results, nil
	}
	x, w, n := op.Args[0].Value, op.Args[1], op.Int("slices")
	var rounding ir.Attrs
	if x.Type.Elem != tensor.F32 {
		x, rounding = x.Op.Args[0].Value, x.Op.Attrs
	}
	var parts, sizes = make([]string, n), make([]int, n)
	for i := range n {
		parts[i], sizes[i] = names.Fresh(x.Name+"_slice"), w.Type.Cols()
	}
	var cut ir.Attrs
	cut.Set("sizes", sizes)
	cuts, err := add("split", []ir.Arg{ir.A(x)}, cut, parts...)
	if err != nil {
		return err
	}
	var columns []ir.Arg
	for _, part := range cuts {
		if rounding != nil {
			q, err := add("quantize_act", []ir.Arg{ir.A(part)}, slices.Clone(rounding), names.Fresh(part.Name+"_q"))
			if err != nil {
				return err
			}
			part = q[0]
		}
		y, err := add("matmul", []ir.Arg{ir.A(part), w}, nil, names.Fresh(op.Result().Name+"_slice"))
		if err != nil {
			return err
		}
		columns = append(columns, ir.A(y[0]))
	}
	whole, err := add("concat", columns, nil, names.Fresh(op.Result().Name))
	if err != nil {
		return err
	}
	at := b.Index(op)
	b.Remove(at)
	b.Insert(at, made...)
	g.ReplaceUses(op.Result(), whole[0])
	whole[0].Name = op.Result().Name
	return nil
}
