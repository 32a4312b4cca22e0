package spec

import (
	"cmp"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir"
)

// indexer returns the word of a layer's indexer.
func (n *Network) indexer(layer int) string {
	if p := n.Indexer.Pattern; len(p) > 0 {
		return p[layer%len(p)]
	}
	return "none"
}

func (n *Network) indexes(layer int) bool {
	return n.indexer(layer) == "own" || n.compression(layer) == "overlapping"
}

// checkIndexer checks the hyper-parameters of the indexer.
func (s *Spec) checkIndexer() error {
	n := &s.Network
	x := &n.Indexer
	if !contains(x.Pattern, "own") && !contains(x.Pattern, "shared") {
		return nil
	}
	err := positive("heads", x.Heads, "head_dim", x.HeadDim, "top_k", x.TopK)
	switch {
	case err != nil:
	case !n.LatentAttention:
		err = fmt.Errorf("an indexer needs latent_attention, whose queries it shares")
	case x.HeadDim < n.QKRopeHeadDim:
		err = fmt.Errorf("head_dim %d, want at least qk_rope_head_dim %d", x.HeadDim, n.QKRopeHeadDim)
	case x.Pattern[0] == "shared":
		err = fmt.Errorf("pattern starts with shared; want own, because no layer before has an indexer")
	}
	if err != nil {
		return errAt(s.Pos("network_structure.indexer"), "network_structure.indexer: %v", err)
	}
	return nil
}

// indexerTensors are the tensors of a layer with an indexer.
var indexerTensors = []string{"index_wq.weight", "index_wk.weight", "index_k_norm.weight", "index_weights.weight"}

// selectRows writes the indexer of a layer on x and on the low-rank queries c: it scores
// the rows of the layer's keys and sets the positions of the best.
func (l *lowerer) selectRows(x, c, rope string) {
	n, sa := l.Net.Indexer, l.s.in("self_attn.")
	turn := func(hint, v string, heads int) string {
		if rope == ropeNone {
			return v
		}
		a := attrs{}.int("heads", heads)
		if n.QKColumnOrder != 2 {
			a = a.word("pairs", "adjacent")
		}
		return l.t.op(hint, "rope", []string{v, l.cs[rope]}, a)
	}
	q := turn("iqr", l.affine("iq", "index_wq", sa+"index_wq", c), n.Heads)
	k := l.affine("ik", "index_wk", sa+"index_wk", x)
	norm := sa + "index_k_norm"
	w, b := l.weight("index_k_norm", norm+".weight", nil), l.weight("index_k_norm_bias", norm+".bias", nil)
	k = turn("ikr", l.normWith("ikn", "std", k, w, b, cmp.Or(n.NormEps, l.Net.NormEps), 0, 1), 1)
	l.selected = l.choose(q, k, x, 1)
}

// choose writes the token's key for an indexer, and the choice among those of every given
// row.
func (l *lowerer) choose(q, k, x string, every int) string {
	n, sa := l.Net.Indexer, l.s.in("self_attn.")
	rows := l.indexRows()
	l.t.effect("kv_append", []string{rows, k})
	// Scores are scaled by 1/√head_dim, and by 1/√heads as in transformers.
	by := l.scaled("iw", l.affine("iw", "index_weights", sa+"index_weights", x), 1/math.Sqrt(float64(n.Heads*n.HeadDim)))
	a := attrs{}.int("heads", n.Heads).int("top", n.TopK)
	if every > 1 {
		a = a.int("every", every)
	}
	return l.t.op("sel", "select_rows", []string{q, by, rows}, a)
}

// indexRows declares the rows of the layer's keys for an indexer, in at most 16 bits.
func (l *lowerer) indexRows() string {
	return l.stateOf(l.prefix+"index", l.at, &ir.StateType{Page: pageRows, Fields: []ir.Field{{Name: "k", Elem: l.indexType(), Shape: []int{1, l.Net.Indexer.HeadDim}}}})
}
