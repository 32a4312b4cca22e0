package spec

import (
	"fmt"
)

// checkSharedKV checks the hyper-parameters of attention with one head of keys that are
// also the values.
func (s *Spec) checkSharedKV() error {
	n := &s.Network
	if !n.SharedKV {
		return nil
	}
	heads, _ := number(s.Config["num_attention_heads"])
	kv, has := number(s.Config["num_key_value_heads"])
	var err error
	switch c := n.Compression; {
	case has && kv != 1:
		err = fmt.Errorf("num_key_value_heads %v, want 1", kv)
	case n.OutGroups < 1 || int(heads)%n.OutGroups != 0:
		err = fmt.Errorf("out_groups %d, want a divisor of num_attention_heads %v", n.OutGroups, heads)
	case n.SlidingWindow < 1:
		err = fmt.Errorf("sliding_window is %d, want 1 or more", n.SlidingWindow)
	case contains(c.Pattern, "overlapping"):
		x := n.Indexer
		err = positive("compression.overlapping_every", c.OverlapEvery, "indexer.heads", x.Heads, "indexer.head_dim", x.HeadDim, "indexer.top_k", x.TopK)
	}
	if err == nil && contains(n.Compression.Pattern, "separate") {
		err = positive("compression.separate_every", n.Compression.EachEvery)
	}
	if err != nil {
		return errAt(s.Pos("network_structure.shared_key_value"), "network_structure.shared_key_value: %v", err)
	}
	return nil
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

// checkStreams checks the hyper-parameters of hyper-connections.
func (s *Spec) checkStreams() error {
	n := &s.Network
	err := error(nil)
	switch x := n.Streams; {
	case x.Count == 0:
	case x.Count < 1 || x.Count > 16 || x.Iterations < 1 || x.Eps < 0:
		err = fmt.Errorf("count %d, iterations %d, eps %g; want 1 to 16, 1 or more, and 0 or more", x.Count, x.Iterations, x.Eps)
	case n.IsParallelAttn || n.MLPAttnShareInput || n.ResidualNormed || n.encodes() || len(n.MixerPattern) > 0 || n.AltUp.Streams > 0:
		err = fmt.Errorf("hyper-connections need attention in each layer, with an FFN after it and norms before both")
	}
	if err != nil {
		return errAt(s.Pos("network_structure.streams"), "network_structure.streams: %v", err)
	}
	return nil
}

// maxKernel is the maximum number of tokens that a convolution reads.
const maxKernel = 255

// checkConvolution checks the hyper-parameters of the convolution.
func (s *Spec) checkConvolution() error {
	n := &s.Network
	c, key := n.Convolution, "network_structure.convolution"
	switch {
	case c.KernelSize < 0 || c.KernelSize > maxKernel || c.KernelSize > 0 && c.KernelSize%2 == 0:
		return errAt(s.Pos(key), "%s.kernel_size: have %d, want 0 (none) or an odd number up to %d", key, c.KernelSize, maxKernel)
	case c.Groups < 1:
		return errAt(s.Pos(key), "%s.groups: have %d, want 1 or more", key, c.Groups)
	case c.KernelSize > 0 && !n.encodes():
		return errAt(s.Pos(key), "%s: a step of a decoder has only a part of a text; want an encoder", key)
	}
	return nil
}
