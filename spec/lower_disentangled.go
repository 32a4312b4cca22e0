package spec

import (
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Standard names of the embeddings of relative positions and of their norm.
const (
	relativePositions = "enc.relative_embeddings.weight"
	relativeNorm      = "enc.relative_norm"
)

// disentangled returns the tables and attributes of disentangled attention (DeBERTa: He et
// al. 2021, §3.1): the keys of relative positions, which meet the content's queries (c2p),
// and their queries, which meet the content's keys (p2c). The tables do not depend on the
// input. They are the embeddings of positions, which all layers share, projected by
// matrices of the layer, or by those of the content.
func (l *lowerer) disentangled() (args []string, a attrs) {
	for _, std := range []string{relativePositions, relativeNorm + ".weight", relativeNorm + ".bias"} {
		l.read[std] = true // also where the configuration names no product with them
	}
	if l.Net.PositionEmbedding != "disentangled" || !l.has(relativePositions) {
		return nil, nil
	}
	rows := l.tensors[relativePositions].Shape[0]
	a = a.int("rel_buckets", rows).int("rel_max", l.Net.RelMaxDistance).word("rel_spacing", l.Net.RelSpacing)
	for _, t := range []struct {
		kind, flag, own, shared string
		turned                  bool
	}{{"c2p", "rel_keys", "self_attn.rel_wk", "self_attn.wk", true}, {"p2c", "rel_queries", "self_attn.rel_wq", "self_attn.wq", false}} {
		if !slices.Contains(l.Net.PosAttention, t.kind) {
			continue
		}
		std := l.s.in(t.own)
		if !l.has(std + ".weight") {
			std = l.s.in(t.shared)
		}
		w := l.positionTable(t.flag, std, rows, t.turned)
		if w == "" {
			l.fail("network_structure.position_attention: %s, but no tensor is mapped to %s.weight", t.kind, l.s.in(t.own))
		}
		args, a = append(args, w), a.flag(t.flag)
	}
	return args, a
}

// positionTable declares the projection of the embeddings of positions by a layer's matrix
// and bias: [positions, heads·width], or its transpose.
func (l *lowerer) positionTable(name, std string, rows int, turned bool) string {
	stds := []string{std + ".weight"}
	biased := l.has(std + ".bias")
	if biased {
		stds = append(stds, std+".bias")
	}
	width := l.Hyper.Heads * l.Hyper.HeadDim
	shape := []int{rows, width}
	if turned {
		shape = []int{width, rows}
	}
	return l.built(name, stds, shape, true, func(src []*tensor.Transform) *tensor.Transform {
		of := func(std string) *tensor.Transform { return tensor.Source(l.tensors[std].Pattern) }
		x := of(relativePositions)
		if l.has(relativeNorm + ".weight") {
			x = &tensor.Transform{Op: "layernorm", Args: []*tensor.Transform{x, of(relativeNorm + ".weight"), of(relativeNorm + ".bias")}, Nums: []float64{l.Net.NormEps}}
		}
		x = &tensor.Transform{Op: "linear", Args: append([]*tensor.Transform{x}, src...)}
		if turned {
			x = &tensor.Transform{Op: "transpose", Args: []*tensor.Transform{x}}
		}
		return x
	})
}
