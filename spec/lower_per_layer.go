package spec

import "github.com/iflowc/iflowc/ir/tensor"

// perLayerInputs writes the embeddings that layers add to their outputs, those of all
// layers side by side: rows of a second table, and a projection of the token embeddings
// (Gemma 3n, per-layer embeddings).
func (l *lowerer) perLayerInputs() {
	n, table := l.Net.PerLayer, "dec.per_layer.embeddings.weight"
	if n.Size == 0 {
		return
	}
	p := l.scaled("ple", l.t.op("ple", "embed", []string{"%ids", l.weight("embed_per_layer", table, l.paddedTable(table))}, nil), n.EmbedScale)
	if std := "dec.per_layer.proj"; l.has(std + ".weight") {
		c := l.scaled("plc", l.linear("plc", "w_per_layer", std, l.embedded, nil), n.ProjectionScale)
		if norm := "dec.per_layer.norm.weight"; l.has(norm) {
			c = l.normOp("plc", l.Net.NormalizationFunction, c, l.weight("per_layer_norm", norm, nil), "", 0, l.Hyper.Layers)
		}
		p = l.t.op("ple", "add", []string{c, p}, nil)
	}
	l.perLayerInput = l.scaled("ple", p, n.Scale)
}

// paddedTable returns the cut that gives a table a row for every token. Ids without a row
// of their own read the first one. It is nil if there is no such id.
func (l *lowerer) paddedTable(std string) *cut {
	t := l.tensors[std]
	missing := l.Hyper.Rows - t.Shape[0]
	if missing <= 0 {
		return nil
	}
	return &cut{rows: l.Hyper.Rows, apply: func(r *tensor.Transform) *tensor.Transform {
		return &tensor.Transform{Op: "concat", Args: []*tensor.Transform{r, apply("repeat_rows", apply("rows", r, 0, 1), missing)}}
	}}
}

// layerEnd writes what follows the residual addition of a layer's last part: the addition
// of the layer's own embedding, through a gate, and a factor.
func (l *lowerer) layerEnd(x string) string {
	if l.perLayerInput != "" && l.s.std == "dec" && l.Net.AltUp.Streams < 2 {
		x = l.t.op("x3", "add", []string{x, l.perLayerOutput(x)}, nil)
	}
	if std := l.s.in("out_scale.weight"); l.has(std) {
		x = l.t.op("x4", "mul", []string{x, l.weight("layer_scale", std, nil)}, nil)
	}
	return x
}

// perLayerOutput writes what a layer adds to its output: its embedding times a gate that
// it computes from x, projected and normed.
func (l *lowerer) perLayerOutput(x string) string {
	own, size := l.s.in("per_layer."), l.Net.PerLayer.Size
	part := l.t.op("pl", "head_cols", []string{l.perLayerInput}, attrs{}.int("heads", 1).int("lo", l.at*size).int("hi", (l.at+1)*size))
	gate := l.activation(l.affine("plg", "w_per_layer_gate", own+"gate", x))
	y := l.affine("plo", "w_per_layer_out", own+"out", l.t.op("plg", "mul", []string{gate, part}, nil))
	return l.outNorm("plo", "per_layer_out_norm", own+"out_norm", y)
}
