package codegen

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/templates"
)

// A regionEmitter emits the regions of a block for one target.
type regionEmitter struct {
	loop func(op *ir.Op) error    // a repeat
	rows func(ops []*ir.Op) error // neighbouring row ops, which share a function
	root func(op *ir.Op) error    // a fuse region, or a root that stands alone
	// An exchange with other ranks and the row ops behind it; nil where the
	// target has none.
	comm func(op *ir.Op, after []*ir.Op) error
}

// each emits the ops of a block in order.
func (e regionEmitter) each(b *ir.Block) error {
	for i := 0; i < len(b.Ops); i++ {
		op, emit := b.Ops[i], e.root
		switch {
		case op.Def.Name == "repeat":
			emit = e.loop
		case op.Def.Name == "quantize_act":
			continue // packing is part of the matmul that reads it
		case op.Def.Is(ir.Collective):
			if e.comm == nil {
				return fmt.Errorf("%s: this target does not reach other ranks", pos(op))
			}
			after := rowOps(b.Ops[i+1:], op)
			emit = func(*ir.Op) error { return e.comm(op, after) }
			i += len(after)
		case isRowOp(op):
			list := rowOps(b.Ops[i:], op)
			emit = func(*ir.Op) error { return e.rows(list) }
			i += len(list) - 1
		}
		if err := emit(op); err != nil {
			return err
		}
	}
	return nil
}

// rowOps lists the row ops that ops begin with, of as many rows as op has. A send
// yields nothing to go on with.
func rowOps(ops []*ir.Op, op *ir.Op) []*ir.Op {
	if op.Def.Is(ir.Collective) && len(op.Results) == 0 {
		return nil
	}
	j := 0
	for j < len(ops) && isRowOp(ops[j]) && firstRow(ops[j]).Role() == firstRow(op).Role() {
		j++
	}
	return ops[:j]
}

// split takes a fuse region apart: the ops in front of its root, the root, and
// those behind it, whose results lie where the region's do. Any other op is a
// root that stands alone.
func (g *cpuGen) split(op *ir.Op) (pro []*ir.Op, root *ir.Op, epi []*ir.Op, err error) {
	if op.Def.Name != "fuse" {
		return nil, op, nil, nil
	}
	at := slices.IndexFunc(op.Body.Ops, func(o *ir.Op) bool { return o.Def.Is(ir.Root) })
	if at < 0 {
		return nil, nil, nil, fmt.Errorf("%s: no root in the region", pos(op))
	}
	for i, y := range op.Body.Yield {
		g.slots[y] = g.slots[op.Results[i]]
	}
	return op.Body.Ops[:at], op.Body.Ops[at], op.Body.Ops[at+1:], nil
}

// matmulOf is what any target has to know of a matmul region before it emits it.
func (g *cpuGen) matmulOf(s *schedule, op *ir.Op, pro []*ir.Op, root *ir.Op, epi []*ir.Op) (*matmulCode, error) {
	m := &matmulCode{g: g, s: s, root: root, epi: epi, w: g.weights[root.Args[1].Value], outs: map[*ir.Value]bool{}, direct: len(epi) == 0}
	var err error
	if m.tail, err = templates.PlanTail(root, epi); err != nil {
		return nil, fmt.Errorf("%s: %w", pos(op), err)
	}
	if m.x = root.Args[0].Value; m.x.Type.Elem != tensor.F32 {
		m.x = m.x.Op.Args[0].Value
	}
	for _, p := range pro {
		if p.Def.Name != "quantize_act" {
			m.pro = append(m.pro, p)
		}
	}
	if op == root {
		m.outs[root.Results[0]] = true
		return m, nil
	}
	for _, y := range op.Body.Yield {
		m.outs[y] = true
	}
	return m, nil
}
