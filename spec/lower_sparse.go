package spec

import (
	"fmt"
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
