package spec

import (
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
)

// embedding writes the token embeddings with their projection, multiplier,
// positions, token types and norm.
func (l *lowerer) embedding() string {
	x := l.t.op("x0", "embed", []string{"%ids", l.weight("embed", l.embedStd(), nil)}, nil)
	x = l.maskDropout(x)
	late, behind := l.projectsLate(), l.projectsSum()
	if !late && !behind {
		x = l.projected(x)
	}
	scaled := func() {
		if by := l.Net.EmbeddingLinearScale; l.Net.HasEmbeddingLinearNorm {
			if by <= 1e-4 {
				by = math.Sqrt(float64(l.Hyper.Hidden))
			}
			x = l.scaled("x0", x, by)
		}
	}
	if l.Net.LinearNormBeforeSinusoid {
		scaled()
	}
	x = l.typeEmbeddings(l.learnedPositions(x))
	if behind {
		x = l.projected(x)
	}
	if !l.Net.LinearNormBeforeSinusoid {
		scaled()
	}
	if norm := l.s.std + ".input_norm"; l.has(norm + ".weight") {
		x, _ = l.norm("x0", "in_norm", norm, x, 0)
	}
	if late {
		x = l.projected(x)
	}
	return x
}

// embedStd returns the standard name of the stack's embedding table: its own or
// the shared one.
func (l *lowerer) embedStd() string {
	if own := l.s.std + ".token_embeddings.weight"; l.has(own) {
		return own
	}
	return "dec.token_embeddings.weight"
}

// projected writes the projection of embeddings to the hidden width, if the model has one.
func (l *lowerer) projected(x string) string {
	if !l.has("input_transform.weight") {
		return x
	}
	return l.affine("x0", "embed_in", "input_transform", x)
}

// projectsLate reports whether positions and norm have the embeddings' width
// (ELECTRA, ALBERT) instead of the hidden width (OPT).
func (l *lowerer) projectsLate() bool {
	norm, ok := l.tensors[l.s.std+".input_norm.weight"]
	return ok && len(norm.Shape) == 1 && norm.Shape[0] == l.Hyper.Embed && (l.Hyper.Embed != l.Hyper.Hidden || l.s.std == "enc")
}

// projectsSum reports whether positions or token types have the embeddings' width, and the
// norm behind them the hidden width (DeBERTa).
func (l *lowerer) projectsSum() bool {
	if l.Hyper.Embed == l.Hyper.Hidden || l.projectsLate() {
		return false
	}
	for _, table := range []string{".pos_embeddings.weight", ".token_type_embeddings.weight"} {
		if t, ok := l.tensors[l.s.std+table]; ok && len(t.Shape) == 2 && t.Shape[1] == l.Hyper.Embed {
			return true
		}
	}
	return false
}

// head writes the ops on output rows: the final norm and the projection to the
// vocabulary.
func (l *lowerer) head(x string) (logits, hidden string) {
	last := l.t.op("last", "rows", []string{x, "%out_rows"}, nil)
	n := l.scaled("last", l.collapseStreams(last), l.Net.OutScale)
	n, _ = l.norm("n", "out_norm", l.s.std+".output_norm", n, l.Net.OutputNormBase)
	hidden = n
	if l.has("output_transform.weight") {
		n = l.affine("n", "embed_out", "output_transform", n)
	}
	logits = l.t.op("logits", "matmul", []string{n, l.headWeight()}, nil)
	logits = l.bias("logits", "head_bias", "output", logits, l.biasCut())
	logits = l.scaled("logits", logits, l.Net.LogitScale)
	return l.softcapped("logits", logits, l.Net.LogitSoftcap), hidden
}

// headWeight returns the output matrix: its own, or the embedding table if they
// are tied. With normalize_lm_head its rows have unit length.
func (l *lowerer) headWeight() string {
	std, name := "output.weight", "head"
	if !l.has(std) || l.Net.TiedEmbeddings {
		std = l.s.std + ".token_embeddings.weight"
	}
	c := l.headCut()
	if std != "output.weight" && c == nil {
		return l.weight("embed", std, nil)
	}
	return l.weight(name, std, c)
}

// biasCut is headCut for a bias that may be stored as a row (BART).
func (l *lowerer) biasCut() *cut {
	if t := l.tensors["output.bias"]; len(t.Shape) != 2 {
		return l.headCut()
	}
	all := rowVector(l.Hyper.Rows)
	if l.Hyper.Rows == l.Hyper.Vocab {
		return all
	}
	rows := rowsCut(0, l.Hyper.Vocab)
	return &cut{rows: l.Hyper.Vocab, vector: true, apply: func(r *tensor.Transform) *tensor.Transform { return rows.apply(all.apply(r)) }}
}

// headCut drops padding rows, which must never be sampled, and normalizes rows.
func (l *lowerer) headCut() *cut {
	padded, unit := l.Hyper.Rows > l.Hyper.Vocab, l.Net.NormalizeLMHead
	if !padded && !unit {
		return nil
	}
	return &cut{rows: l.Hyper.Vocab, apply: func(r *tensor.Transform) *tensor.Transform {
		if padded {
			r = rowsCut(0, l.Hyper.Vocab).apply(r)
		}
		if unit {
			r = &tensor.Transform{Op: "l2norm_rows", Args: []*tensor.Transform{r}}
		}
		return r
	}}
}
