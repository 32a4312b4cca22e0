package spec

import (
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// draftFeatures is the name of the states that the graph of a draft layer reads.
const draftFeatures = "features"

// features writes the states that a draft layer reads, for every token: the states after
// the final norm, or the projection of an EAGLE-3 head of the inputs of three layers.
func (l *lowerer) features(x string) string {
	d := l.Draft
	if d.Taps == nil {
		n := l.scaled("f", x, l.Net.OutScale)
		n, _ = l.norm("f", "out_norm", l.s.std+".output_norm", n, l.Net.OutputNormBase)
		return n
	}
	var taps []string
	for _, layer := range d.Taps {
		if tapped, ok := l.tapped[layer]; ok {
			taps = append(taps, tapped)
		} else {
			taps = append(taps, x) // behind the last layer
		}
	}
	c := l.t.op("f", "concat", taps, nil)
	return l.t.op("f", "matmul", []string{c, l.inner().weight("in", draftIn, nil)}, nil)
}

// inner returns the lowerer of the draft layer, with graph decode as its outer one.
func (l *lowerer) inner() *lowerer {
	if l.draftLowerer == nil {
		l.Draft.Model.declared = map[string]declaration{}
		d := &lowerer{Model: l.Draft.Model, refs: l.refs, byRef: l.byRef, read: map[string]bool{}, prefix: "draft_"}
		d.enter(&d.stacks()[0])
		d.kv = "draft_kv"
		l.draftLowerer = d
	}
	return l.draftLowerer
}

// draft writes the graph of the draft layer before the decoder's graph. Row i reads the
// model's state of token i, the embedding of token i + 1, and earlier rows:
//
//	mtp (DeepSeek-V3, §2.2):  x = In·[norm(e), norm(h)];  z = norm(layer(x));  logits = head·z
//	eagle3 (Li et al. 2025, §3.1):  z = layer(norm(e), h);  logits = head·norm(z)
//
// Attention of an EAGLE-3 layer reads [norm(e), norm(h)]; its residual is h. The columns
// of the result are the logits of token i + 2, then z, which takes the place of h when
// the layer is applied to its own output.
func (l *lowerer) draft() {
	d, in := l.Draft, l.inner()
	in.t.input(draftFeatures, tensor.F32, "T", l.draftWidth())
	in.inputs("ids", "pos", "out_rows")
	in.ropeTables()
	e := in.t.op("e", "embed", []string{"%ids", l.draftEmbed()}, nil)
	e, _ = in.norm("e", "embed_norm", "draft.embed_norm", e, in.Net.OutputNormBase)
	var x, z string
	if d.Taps == nil {
		h, _ := in.norm("h", "hidden_norm", "draft.hidden_norm", "%"+draftFeatures, in.Net.OutputNormBase)
		c := in.t.op("c", "concat", []string{e, h}, nil)
		x = in.t.op("x0", "matmul", []string{c, in.weight("in", draftIn, nil)}, nil)
	} else {
		x, in.beside = "%"+draftFeatures, e
		if d.NormFirst {
			x, _ = in.norm("h", "attn_norm", in.s.in("self_attn.pre_norm"), x, 0)
			in.Net.UseSelfAttnPreNorm = false
		}
	}
	x = in.layers(x)
	x = in.t.op("last", "rows", []string{x, "%out_rows"}, nil)
	n, _ := in.norm("n", "out_norm", "dec.output_norm", x, in.Net.OutputNormBase)
	if z = n; d.Taps != nil {
		z = x
	}
	p := in.t.op("p", "matmul", []string{n, l.draftHead()}, nil)
	in.yield(map[string]string{ir.DraftGraph: in.t.op("p", "concat", []string{p, z}, nil)}, ir.DraftGraph)
	in.checkAllUsed()
	if l.err == nil {
		l.err = in.err
	}
	l.t = in.t
	l.beforeDecode(ir.DraftGraph)
}

// draftWidth returns the number of columns of the states that the draft layer reads.
func (l *lowerer) draftWidth() int {
	if l.Draft.Taps == nil {
		return l.Hyper.Hidden
	}
	return l.Draft.Model.Hyper.Hidden
}

func (l *lowerer) draftEmbed() string {
	if in := l.inner(); in.has(in.embedStd()) {
		return in.weight("embed", in.embedStd(), nil)
	}
	return l.weight("embed", l.embedStd(), nil)
}

func (l *lowerer) draftHead() string {
	in := l.inner()
	if !in.has(draftHead) {
		return l.headWeight()
	}
	var c *cut
	if in.tensors[draftHead].Shape[0] > l.Draft.Columns {
		c = rowsCut(0, l.Draft.Columns)
	}
	return in.weight("head", draftHead, c)
}
