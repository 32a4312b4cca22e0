package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// encode writes the encoder's graph. Its result is the last hidden state of
// every token. An encoder without a decoder also gets the heads of its
// checkpoint, which run on output rows.
func (l *lowerer) encode() {
	alone := !l.Net.decodes()
	l.inputs("ids", "pos")
	if l.has("enc.token_type_embeddings.weight") && l.typeRows() > 1 {
		l.inputs("types")
	}
	out := map[string]string{}
	if alone && (len(l.Net.EmbeddingDense) > 0 || l.maskedHead() || l.has("pooler.weight") || l.has("classifier.weight")) {
		l.inputs("out_rows")
	}
	l.ropeTables()
	l.globalTokens()
	x := l.layers(l.embedding())
	x, _ = l.norm("xn", "out_norm", "enc.output_norm", x, l.Net.OutputNormBase)
	if !alone {
		l.writeCross(x)
	}
	out["hidden"] = x
	if alone {
		l.heads(x, out)
	}
	l.yield(out, "hidden", "logits", "pooled", "classes", "embedding")
	l.graph("encode")
}

// maskedHead reports whether the checkpoint has a masked-LM head.
func (l *lowerer) maskedHead() bool {
	return l.has("output.bias") || l.has("output.weight") || l.Net.BareMaskedHead
}

// heads writes the heads that run on output rows: the masked-LM head on masked
// tokens, the pooler and the classifier on each sequence's first token.
func (l *lowerer) heads(x string, out map[string]string) {
	pooled, classes := l.has("pooler.weight"), l.has("classifier.weight")
	if len(l.Net.EmbeddingDense) > 0 {
		out["embedding"] = l.embeddingOf(x)
	}
	if !l.maskedHead() && !pooled && !classes {
		return
	}
	last := l.t.op("last", "rows", []string{x, "%out_rows"}, nil)
	if l.maskedHead() {
		out["logits"] = l.maskedLogits(last)
	}
	if classes && l.Net.ClassPooling == "mean" {
		last = l.t.op("last", "rows", []string{l.meanOfTokens(x), "%out_rows"}, nil)
	}
	p := last
	if pooled && classes && l.Net.ClassPooling == "late" {
		p = l.t.op("p", "rows", []string{l.meanOfTokens(l.pooled(x)), "%out_rows"}, nil)
	} else if pooled {
		p = l.pooled(last)
		out["pooled"] = p
	} else if classes && l.has("output_transform.weight") {
		p = l.headTransform(last)
	}
	if classes {
		out["classes"] = l.affine("classes", "classifier", "classifier", p)
	}
}

// pooled writes the pooler: a dense layer with an activation.
func (l *lowerer) pooled(x string) string {
	return l.t.op("pooled", activations[l.Net.PoolerActivation], []string{l.affine("p", "pooler", "pooler", x)}, nil)
}

// embeddingOf writes the pooling of a text's states and the dense layers behind it, on
// output rows: with the mean of all tokens every row of a text gives the same embedding.
func (l *lowerer) embeddingOf(x string) string {
	if l.Net.EmbeddingPooling == "mean" {
		x = l.meanOfTokens(x)
	}
	return l.embeddingDense(l.t.op("last", "rows", []string{x, "%out_rows"}, nil))
}

// numbered returns the cut that reads tensor j of those that differ in their number.
func (l *lowerer) numbered(std string, j int) *cut {
	t := l.tensors[std]
	if len(t.Shape) == 0 {
		return nil
	}
	return &cut{rows: t.Shape[0], apply: func(*tensor.Transform) *tensor.Transform {
		return tensor.Source(strings.ReplaceAll(t.Pattern, "{j}", fmt.Sprint(j)))
	}}
}

// decoderHeads writes the heads of a decoder on its output rows: the classifier, which
// reads a text's last token, and the dense layers of an embedding. These are applied to
// each token if the mean follows, which is the same for layers without activations.
func (l *lowerer) decoderHeads(x string, out map[string]string) {
	if l.has("classifier.weight") {
		out["classes"] = l.affine("classes", "classifier", "classifier", x)
		if !l.has("output.weight") && !l.Net.TiedEmbeddings {
			delete(out, "logits") // the checkpoint has no output matrix
		}
	}
	if acts := l.Net.EmbeddingDense; len(acts) > 0 {
		if l.Net.EmbeddingPooling == "mean" && slices.ContainsFunc(acts, func(act string) bool { return act != "identity" }) {
			l.fail("network_structure.embedding_dense: a decoder has no mean of the tokens in front of layers with activations")
		}
		out["embedding"] = l.embeddingDense(x)
	}
}

// embeddingDense writes the dense layers behind the pooling.
func (l *lowerer) embeddingDense(x string) string {
	for j, act := range l.Net.EmbeddingDense {
		name, std := fmt.Sprintf("embedding_dense_%d", j), fmt.Sprintf("embedding_dense.%d", j)
		x = l.linear("embedding", name, std, x, l.numbered(std+".weight", j))
		x = l.bias("embedding", name+"_bias", std, x, l.numbered(std+".bias", j))
		if act != "identity" {
			x = l.t.op("embedding", activations[act], []string{x}, nil)
		}
	}
	return x
}

// meanOfTokens returns, for every token, the mean of the states of its sequence:
// attention with zero queries weights all tokens equally.
func (l *lowerer) meanOfTokens(x string) string {
	h := l.Hyper
	h.KVHeads, h.HeadDim, h.VDim = h.Heads, h.Hidden/h.Heads, h.Hidden/h.Heads
	pool := l.rows("pool", 0, h, true)
	l.t.begin(0)
	l.t.effect("kv_append", []string{pool, x, x})
	q := l.t.op("q", "scale", []string{x}, attrs{}.num("by", 0))
	mean := l.t.op("mean", "attention", []string{q, pool}, attrs{}.int("heads", h.Heads).int("kv_heads", h.Heads))
	l.t.end()
	return mean
}

// maskedLogits writes the masked-LM head (Devlin et al. 2019): a dense layer with
// activation and norm, then the transposed embeddings and a bias.
func (l *lowerer) maskedLogits(x string) string {
	logits := l.t.op("logits", "matmul", []string{l.headTransform(x), l.headWeight()}, nil)
	return l.bias("logits", "head_bias", "output", logits, l.biasCut())
}

func (l *lowerer) headTransform(x string) string {
	if !l.has("output_transform.weight") {
		return x
	}
	act := l.Net.HeadActivation
	if act == "" {
		act = l.Net.ActivationFunction
	}
	x = l.activationOp(act, l.affine("m", "embed_out", "output_transform", x))
	x, _ = l.norm("m", "embed_out_norm", "output_transform.post_norm", x, 0)
	return x
}

func (l *lowerer) typeRows() int { return l.tensors["enc.token_type_embeddings.weight"].Shape[0] }

// typeEmbeddings adds the embeddings of token types. A table of one row is a
// vector for all tokens. The first row of a table of tasks is added, because a
// request cannot name a task.
func (l *lowerer) typeEmbeddings(x string) string {
	std := l.s.std + ".token_type_embeddings.weight"
	switch {
	case !l.has(std):
	case l.typeRows() == 1:
		x = l.addFirstRow(x, "type_embed", std)
	default:
		p := l.t.op("p", "embed", []string{"%types", l.weight("type_embed", std, nil)}, nil)
		x = l.t.op("x0", "add", []string{x, p}, nil)
	}
	if std = l.s.std + ".task_type_embeddings.weight"; l.has(std) {
		x = l.addFirstRow(x, "task_embed", std)
	}
	return x
}

// addFirstRow adds the first row of a table to every token.
func (l *lowerer) addFirstRow(x, name, std string) string {
	one, vector := rowsCut(0, 1), rowVector(l.tensors[std].Shape[1])
	first := &cut{rows: vector.rows, vector: true, apply: func(r *tensor.Transform) *tensor.Transform { return vector.apply(one.apply(r)) }}
	if l.tensors[std].Shape[0] == 1 {
		first = vector
	}
	return l.t.op("x0", "add", []string{x, l.weight(name, std, first)}, nil)
}
