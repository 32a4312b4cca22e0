package spec

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// medusa writes the graph of the Medusa heads before the decoder's graph.
func (l *lowerer) medusa() {
	if l.Medusa.Chained {
		l.chain()
	} else {
		l.medusaHeads()
	}
	l.beforeDecode(ir.DraftGraph)
}

// beforeDecode ends the graph before the decoder's, because the last graph must be the one
// with the model's results.
func (l *lowerer) beforeDecode(name string) {
	l.graph(name)
	n := len(l.graphs)
	l.graphs[n-2], l.graphs[n-1] = l.graphs[n-1], l.graphs[n-2]
}

// medusaHeads writes the heads. Their input is %hidden, the output rows of the
// states that `decode` yields. Each head applies its residual blocks
// x + silu(W·x + b) and projects to the vocabulary. The columns of %medusa are
// the logits of head 0, of head 1, and so on.
func (l *lowerer) medusaHeads() {
	d := l.Medusa
	l.t = newText(l.refs)
	l.t.input("hidden", tensor.F32, "T", l.Hyper.Hidden)
	l.inputs("out_rows")
	h := l.t.op("h", "rows", []string{"%hidden", "%out_rows"}, nil)
	var states []string
	for i := range d.Heads {
		x := h
		for j := range d.Layers {
			x = l.medusaBlock(i, j, x)
		}
		if d.Projected {
			x = l.t.op(fmt.Sprintf("m%d", i), "matmul", []string{x, l.medusaWeight(fmt.Sprintf("medusa%d_out", i), d.matrix(i), 0)}, nil)
		}
		states = append(states, x)
	}
	l.yield(map[string]string{ir.DraftGraph: l.medusaLogits(states)}, ir.DraftGraph)
}

func (l *lowerer) medusaBlock(head, layer int, x string) string {
	stored, name := l.Medusa.block(head, layer), fmt.Sprintf("medusa%d_%d", head, layer)
	hint := fmt.Sprintf("m%d", head)
	y := l.t.op(hint, "matmul", []string{x, l.medusaWeight(name, stored+".weight", 0)}, nil)
	y = l.t.op(hint, "add", []string{y, l.medusaWeight(name+"_bias", stored+".bias", 0)}, nil)
	y = l.t.op(hint, "silu", []string{y}, nil)
	return l.t.op(hint, "add", []string{x, y}, nil)
}

// medusaWeight declares a stored tensor of the heads, or its first rows.
func (l *lowerer) medusaWeight(name, stored string, rows int) string {
	t := l.Medusa.tensors[stored]
	transform, shape := tensor.Source(stored), append([]int(nil), t.Shape...)
	if rows > 0 && rows < shape[0] {
		c := rowsCut(0, rows)
		transform, shape[0] = c.apply(transform), rows
	}
	return l.declare(&element{name: name, std: stored, layer: -1, typ: t.DType, block: t.DType.IsBlock(), shape: shape, transform: transform})
}

// medusaLogits projects the heads' states through the checkpoint's own matrices,
// or all states in one matmul through the model's output matrix.
func (l *lowerer) medusaLogits(states []string) string {
	d := l.Medusa
	var parts []string
	switch {
	case !d.Shared:
		for i, x := range states {
			w := l.medusaWeight(fmt.Sprintf("medusa%d_head", i), d.matrix(i), d.Columns)
			parts = append(parts, l.t.op("p", "matmul", []string{x, w}, nil))
		}
	case l.has("output_transform.weight") || l.has("output.bias"):
		l.err = errAt(l.Spec.Pos("medusa"), "medusa: the model's head is more than a matrix, which heads cannot share; train heads with matrices of their own (lm_head: own)")
		return states[0]
	case len(states) > 1 && d.Columns%16 == 0:
		x := l.t.op("c", "concat", states, nil)
		return l.t.op("p", "matmul", []string{x, l.sharedHead()}, attrs{}.int("slices", len(states)))
	default:
		for _, x := range states {
			parts = append(parts, l.t.op("p", "matmul", []string{x, l.sharedHead()}, nil))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return l.t.op("p", "concat", parts, nil)
}

// sharedHead returns the model's output matrix, or a copy of its first rows in
// the type of the other matrices.
func (l *lowerer) sharedHead() string {
	if l.Medusa.Columns == l.Hyper.Vocab {
		return l.headWeight()
	}
	std := "output.weight"
	if !l.has(std) || l.Net.TiedEmbeddings {
		std = l.s.std + ".token_embeddings.weight"
	}
	first, all := rowsCut(0, l.Medusa.Columns), l.headCut()
	if all == nil {
		return l.weight("medusa_vocab", std, first)
	}
	c := &cut{rows: first.rows, apply: func(r *tensor.Transform) *tensor.Transform { return first.apply(all.apply(r)) }}
	return l.weight("medusa_vocab", std, c)
}
