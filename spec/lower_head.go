package spec

import (
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
)

// embedding writes token embeddings, their projection, multiplier, learned
// positions and norm.
func (l *lowerer) embedding() string {
	x := l.t.op("x0", "embed", []string{"%ids", l.weight("embed", "dec.token_embeddings.weight", nil)}, nil)
	if l.has("input_transform.weight") {
		x = l.linear("x0", "embed_in", "input_transform", x, nil)
		x = l.bias("x0", "embed_in_bias", "input_transform", x, nil)
	}
	if l.Net.HasEmbeddingLinearNorm {
		by := l.Net.EmbeddingLinearScale
		if by <= 1e-4 {
			by = math.Sqrt(float64(l.Hyper.Hidden))
		}
		x = l.scaled("x0", x, by)
	}
	x = l.learnedPositions(x)
	if l.has("dec.input_norm.weight") {
		x, _ = l.norm("x0", "in_norm", "dec.input_norm", x, 0)
	}
	return x
}

// head writes what runs on wanted rows only: the final norm and the
// projection to the vocabulary.
func (l *lowerer) head(x string) string {
	last := l.t.op("last", "rows", []string{x, "%wanted"}, nil)
	n := l.scaled("last", last, l.Net.OutScale)
	n, _ = l.norm("n", "out_norm", "dec.output_norm", n, l.Net.OutputNormBase)
	if l.has("output_transform.weight") {
		n = l.linear("n", "embed_out", "output_transform", n, nil)
		n = l.bias("n", "embed_out_bias", "output_transform", n, nil)
	}
	logits := l.t.op("logits", "matmul", []string{n, l.headWeight()}, nil)
	logits = l.bias("logits", "head_bias", "output", logits, l.headCut())
	logits = l.scaled("logits", logits, l.Net.LogitScale)
	return l.softcapped("logits", logits, l.Net.LogitSoftcap)
}

// headWeight is the matrix of the head: its own, or the embedding's where they
// are tied; with unit rows where the specification says so.
func (l *lowerer) headWeight() string {
	std, name := "output.weight", "head"
	if !l.has(std) || l.Net.TiedEmbeddings {
		std = "dec.token_embeddings.weight"
	}
	c := l.headCut()
	if std != "output.weight" && c == nil {
		return l.weight("embed", std, nil)
	}
	return l.weight(name, std, c)
}

// headCut drops padding rows, which must never be sampled, and normalises rows.
func (l *lowerer) headCut() *cut {
	padded, unit := l.Hyper.Rows > l.Hyper.Vocab, l.Net.NormalizeLMHead
	if !padded && !unit {
		return nil
	}
	return &cut{rows: l.Hyper.Vocab, apply: func(r *tensor.Recipe) *tensor.Recipe {
		if padded {
			r = rowsCut(0, l.Hyper.Vocab).apply(r)
		}
		if unit {
			r = &tensor.Recipe{Op: "l2norm_rows", Args: []*tensor.Recipe{r}}
		}
		return r
	}}
}
