package spec

import (
	"cmp"
	"fmt"
	"math"
)

// Hyper holds the sizes of a model or of one of its stacks.
type Hyper struct {
	Hidden     int // width of the residual stream
	Embed      int // width of token embeddings; equal to Hidden unless there is an input projection
	Layers     int
	Heads      int
	KVHeads    int
	HeadDim    int // of queries and keys
	VDim       int // of values
	FFN        int // rows of the first FFN matrix (the gate of a gated FFN); 0 until Resolve reads it
	Vocab      int // token ids that may be sampled
	Rows       int // rows of the embedding matrix, at least Vocab
	MaxContext int // positions that the model supports; 0: unknown
	RopeDim    int // rotated channels of a head; 0 without rope
}

// Upper bounds of sizes, far above any real model; they keep products inside an int.
const (
	maxWidth   = 1 << 24
	maxLayers  = 1 << 14
	maxExperts = 1 << 12
)

// config returns a hyper-parameter of config.json as an integer, 0 if it is
// absent and not required.
func (s *Spec) config(name string, required bool) (int, error) {
	v, ok := s.Config[name]
	if !ok || v == nil {
		if required {
			return 0, errAt(Pos{File: s.File}, "hyper-parameter %s: missing in %s; give the value that the model was trained with under hyper:", name, s.configName())
		}
		return 0, nil
	}
	f, ok := number(v)
	if !ok {
		return 0, errAt(s.Pos("hyper."+name), "hyper-parameter %s: have %v, want one integer (a value per layer is not available)", name, v)
	}
	if f != math.Trunc(f) || f < 1 || f > maxWidth {
		return 0, errAt(s.Pos("hyper."+name), "hyper-parameter %s: have %v, want an integer from 1 to %d", name, v, maxWidth)
	}
	return int(f), nil
}

func (s *Spec) configName() string {
	if s.ConfigFile != "" {
		return s.ConfigFile
	}
	return "the file's metadata"
}

// hyperparameters reads the sizes and checks them against each other.
func (s *Spec) hyperparameters() (Hyper, error) {
	var h Hyper
	for _, f := range []struct {
		name     string
		to       *int
		required bool
	}{
		{"hidden_size", &h.Hidden, true}, {"num_hidden_layers", &h.Layers, true}, {"num_attention_heads", &h.Heads, true},
		{"num_key_value_heads", &h.KVHeads, false}, {"intermediate_size", &h.FFN, false}, {"vocab_size", &h.Vocab, false},
		{"max_position_embeddings", &h.MaxContext, false},
	} {
		n, err := s.config(f.name, f.required)
		if err != nil {
			return h, err
		}
		*f.to = n
	}
	if err := s.headSizes(&h); err != nil {
		return h, err
	}
	h.Layers *= s.Network.WeightGroupLayers
	s.vocabulary(&h)
	h.Embed = h.Hidden
	if err := cmp.Or(s.ropeDim(&h), s.checkAxes(h.RopeDim)); err != nil {
		return h, err
	}
	return h, nil
}

// encoderHyper returns the sizes of an encoder that is combined with a decoder
// of sizes h. A spec without config.json may omit sizes that equal the decoder's.
// A config.json must state layers and heads, because transformers would use
// the default of a class instead.
func (s *Spec) encoderHyper(h Hyper) (Hyper, error) {
	for _, f := range []struct {
		name     string
		to       *int
		required bool
	}{{"encoder_layers", &h.Layers, s.ConfigFile != ""}, {"encoder_attention_heads", &h.Heads, s.ConfigFile != ""}, {"encoder_ffn_dim", &h.FFN, false}} {
		n, err := s.config(f.name, f.required)
		if err != nil {
			return h, err
		}
		if n > 0 {
			*f.to = n
		}
	}
	h.KVHeads = h.Heads
	return h, s.headSizes(&h)
}

// headSizes computes and checks the sizes that follow from widths and heads.
func (s *Spec) headSizes(h *Hyper) error {
	if h.Layers > maxLayers {
		return errAt(s.Pos("hyper.num_hidden_layers"), "num_hidden_layers: have %d, want at most %d", h.Layers, maxLayers)
	}
	if h.KVHeads == 0 {
		h.KVHeads = h.Heads
	}
	if h.Heads%h.KVHeads != 0 && !s.Network.LatentAttention {
		return errAt(s.Pos("hyper.num_key_value_heads"), "num_key_value_heads: have %d, want a divisor of num_attention_heads %d", h.KVHeads, h.Heads)
	}
	n := &s.Network
	h.HeadDim = n.HeadDim
	if n.LatentAttention {
		h.KVHeads = h.Heads
		if d := n.HeadDim; d != 0 && d != n.QKRopeHeadDim && d != n.QKNopeHeadDim+n.QKRopeHeadDim {
			return errAt(s.Pos("network_structure.head_dim"), "head_dim: have %d, want qk_rope_head_dim %d or that and qk_nope_head_dim %d", d, n.QKRopeHeadDim, n.QKNopeHeadDim)
		}
		h.HeadDim = n.QKNopeHeadDim + n.QKRopeHeadDim
		if n.QKNopeHeadDim <= 0 || n.QKRopeHeadDim <= 0 || n.VHeadDim <= 0 || n.KVLoraRank <= 0 {
			return errAt(s.Pos("network_structure.latent_attention"), "network_structure.latent_attention: qk_nope_head_dim %d, qk_rope_head_dim %d, v_head_dim %d, kv_lora_rank %d; want all above 0", n.QKNopeHeadDim, n.QKRopeHeadDim, n.VHeadDim, n.KVLoraRank)
		}
	}
	if h.HeadDim == 0 {
		if h.Hidden%h.Heads != 0 {
			return errAt(s.Pos("hyper.hidden_size"), "hidden_size %d is no multiple of num_attention_heads %d; give head_dim", h.Hidden, h.Heads)
		}
		h.HeadDim = h.Hidden / h.Heads
	}
	h.VDim = h.HeadDim
	if n.VHeadDim > 0 {
		h.VDim = n.VHeadDim
	}
	return nil
}

func (s *Spec) vocabulary(h *Hyper) {
	if s.InputVocabSize > 0 {
		h.Vocab = s.InputVocabSize
	}
	if s.VocabSize > 0 {
		h.Vocab = s.VocabSize
	}
	h.Rows = max(h.Vocab, s.PaddedVocabSize)
}

func (s *Spec) ropeDim(h *Hyper) error {
	n := &s.Network
	if n.PositionEmbedding != "rope" {
		return nil
	}
	if n.LatentAttention {
		if h.RopeDim = n.QKRopeHeadDim; h.RopeDim%2 != 0 {
			return errAt(s.Pos("network_structure.qk_rope_head_dim"), "network_structure.qk_rope_head_dim: have %d, want an even number", h.RopeDim)
		}
		return nil
	}
	h.RopeDim = h.HeadDim
	key := "network_structure.partial_rotary_factor"
	if rs := n.RopeScaling; n.PartialRotaryFactor != 1 && (rs == nil || rs.kind() != "proportional") {
		h.RopeDim = int(float64(h.HeadDim) * n.PartialRotaryFactor)
	}
	if n.RopeDim > 0 {
		h.RopeDim, key = n.RopeDim, "network_structure.rope_dim"
		// chatglm2 states the full width, but only the first half is rotated.
		if s.Set(key) && n.QKColumnOrder == 1 && n.PartialRotaryFactor == 1 && n.RopeDim > h.HeadDim {
			h.RopeDim = h.HeadDim
		}
	}
	if h.RopeDim < 2 || h.RopeDim%2 != 0 || h.RopeDim+n.RopeOffset > h.HeadDim {
		return errAt(s.Pos(key), "%d rotated channels from %d in heads of %d; want an even number that fits", h.RopeDim, n.RopeOffset, h.HeadDim)
	}
	return nil
}

// checkAxes checks the axes of positions of multi-axis rope. It turns tokens of a text by
// the same angles as rope on one axis.
func (s *Spec) checkAxes(rotated int) error {
	n, sum := &s.Network, 0
	for _, width := range n.MRopeSection {
		if sum += width; width < 0 {
			return errAt(s.Pos("network_structure.mrope_section"), "network_structure.mrope_section: have %v, want 0 or more frequencies on each axis", n.MRopeSection)
		}
	}
	if len(n.MRopeSection) > 0 && rotated > 0 && sum != rotated/2 && !n.MRopeInterleaved {
		return errAt(s.Pos("network_structure.mrope_section"), "network_structure.mrope_section: have %v, which adds up to %d; want %d, half of the %d rotated channels", n.MRopeSection, sum, rotated/2, rotated)
	}
	return nil
}

// checkConsistency returns an error for keys of network_structure that contradict each other.
func (s *Spec) checkConsistency() error {
	n := &s.Network
	at := func(key, format string, args ...any) error {
		return errAt(s.Pos("network_structure."+key), "network_structure.%s: %s", key, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Graph != "":
		return nil
	case n.NormalizationFunction == "":
		return at("normalization_function", "missing; want std, rms or linear")
	case n.ActivationFunction == "":
		return at("activation_function", "missing; want one such as silu, gelu or relu")
	case n.IsParallelAttn && n.MLPAttnShareInput:
		return at("mlp_attn_share_input", "is_parallel_attn is set too; an FFN reads either attention's pre-norm or the layer input, want one of them")
	case n.QKColumnOrder < 0 || n.QKColumnOrder > 2:
		return at("qk_column_order", "have %d, want 0, 1 or 2", n.QKColumnOrder)
	case n.QKVFormat < 0 || n.QKVFormat > 2:
		return at("qkv_format", "have %d, want 0, 1 or 2", n.QKVFormat)
	case n.NormEps <= 0 || n.NormEps > 1:
		return at("norm_eps", "have %g, want more than 0 and at most 1", n.NormEps)
	case n.RopeTheta <= 0 || n.RopeLocalTheta < 0:
		return at("rope_theta", "have %g, want more than 0", n.RopeTheta)
	case n.PartialRotaryFactor <= 0 || n.PartialRotaryFactor > 1:
		return at("partial_rotary_factor", "have %g, want more than 0 and at most 1", n.PartialRotaryFactor)
	case n.KQScale <= 0:
		return at("kq_scale", "have %g, want more than 0", n.KQScale)
	case n.SlidingWindow < 0:
		return at("sliding_window", "have %d, want 0 (none) or more", n.SlidingWindow)
	case n.WeightGroups < 0 || n.WeightGroups > maxLayers:
		return at("weight_groups", "have %d, want 0 (none) to %d", n.WeightGroups, maxLayers)
	case n.WeightGroupLayers < 1 || n.WeightGroupLayers > maxLayers || n.WeightGroupLayers > 1 && n.WeightGroups == 0:
		return at("weight_group_layers", "have %d, want 1 or more, and 1 without weight_groups", n.WeightGroupLayers)
	case n.HeadDim < 0 || n.HeadDim > maxWidth:
		return at("head_dim", "have %d, want 0 (derived) or more", n.HeadDim)
	case n.AttnSoftcap < 0 || n.LogitSoftcap < 0:
		return at("attn_softcap", "a softcap is negative; want 0 (none) or more")
	case n.FullAttnStep > 0 && n.SlidingWindow == 0:
		return at("full_attention_step", "some layers have a sliding window, but sliding_window is 0; want its width")
	case len(n.AttentionPattern) > 0 && contains(n.AttentionPattern, "sliding") && n.SlidingWindow == 0:
		return at("attention_pattern", "has sliding layers, but sliding_window is 0; want its width")
	case n.MoEGroups > 0 && (n.ExpertCount%n.MoEGroups != 0 || n.MoETopGroups < 1 || n.MoETopGroups > n.MoEGroups):
		return at("moe_groups", "%d groups of %d experts, %d per token; want groups of equal size, and at least one per token", n.MoEGroups, n.ExpertCount, n.MoETopGroups)
	case n.MoELayerStep < 1 || n.FullAttnStep < 0 || n.RelMaxDistance < 1:
		return at("moe_layer_step", "moe_layer_step %d, full_attention_step %d, relative_max_distance %d; want them above 0 (full_attention_step: 0 or more)", n.MoELayerStep, n.FullAttnStep, n.RelMaxDistance)
	case n.ExpertCount < 0 || n.ExpertCount > maxExperts || n.ExpertCount > 0 && n.MoETopK < 1:
		return at("expert_count", "%d experts with moe_top_k %d; want at most %d experts, and moe_top_k from 1 to their number", n.ExpertCount, n.MoETopK, maxExperts)
	case n.MoEGroups > 1 && n.MoETopK > n.ExpertCount/n.MoEGroups*n.MoETopGroups:
		return at("moe_top_k", "have %d, more than the experts in moe_top_groups %d of moe_groups %d of %d experts", n.MoETopK, n.MoETopGroups, n.MoEGroups, n.ExpertCount)
	case n.UsingExpertCount > n.ExpertCount:
		return at("using_expert_count", "have %d of %d experts", n.UsingExpertCount, n.ExpertCount)
	case n.MoETopK > n.ExpertCount+n.MoEZeroExperts:
		return at("moe_top_k", "have %d of %d experts", n.MoETopK, n.ExpertCount+n.MoEZeroExperts)
	}
	if s.PaddedVocabSize > 0 && s.PaddedVocabSize < s.VocabSize {
		return errAt(s.Pos("padded_vocab_size"), "padded_vocab_size: have %d, less than vocab_size %d", s.PaddedVocabSize, s.VocabSize)
	}
	return cmp.Or(s.checkIndexer(), s.checkSharedKV(), s.checkStreams(), s.checkConvolution(), s.checkMixers())
}

// checkChunks checks the keys of attention in chunks, of its temperature and of other forms
// of attention and experts.
func (s *Spec) checkChunks() error {
	n := &s.Network
	key, chunked := "attention_chunk", contains(n.AttentionPattern, "chunked")
	switch {
	case n.AttentionChunk < 0 || n.AttentionChunk == 0 && chunked:
		return errAt(s.Pos("network_structure."+key), "network_structure.%s: have %d, want the positions of a chunk", key, n.AttentionChunk)
	case n.encodes() && chunked:
		return errAt(s.Pos("network_structure.attention_pattern"), "network_structure.attention_pattern: an encoder has no chunked layers")
	case n.LayerParts != 1 && n.LayerParts != 2 || n.LayerParts == 2 && (n.encodes() || n.Differential || n.AltUp.Streams > 1 || len(n.MixerPattern) > 0 || len(n.KVPattern) > 0):
		return errAt(s.Pos("network_structure.layer_parts"), "network_structure.layer_parts: have %d, want 1, or 2 in a decoder whose layers have attention and KV caches of their own", n.LayerParts)
	case n.MoEZeroExperts < 0 || n.MoEZeroExperts+n.ExpertCount > maxExperts || n.MoEZeroExperts > 0 && n.UsingExpertCount > 0:
		return errAt(s.Pos("network_structure.moe_zero_experts"), "network_structure.moe_zero_experts: have %d, want 0 or more, at most %d experts in all, and no using_expert_count", n.MoEZeroExperts, maxExperts)
	case n.MoESets < 1:
		return errAt(s.Pos("network_structure.moe_sets"), "network_structure.moe_sets: have %d, want 1 or more", n.MoESets)
	case n.MoENormPower != 1 && n.MoENormPower != 2:
		return errAt(s.Pos("network_structure.moe_norm_power"), "network_structure.moe_norm_power: have %d, want 1 or 2", n.MoENormPower)
	case n.Differential && (n.LatentAttention || n.encodes() || n.AttentionSinks || len(n.KVPattern) > 0 || n.AttnGate != "none"):
		return errAt(s.Pos("network_structure.differential_attention"), "network_structure.differential_attention: not with latent_attention, attention_sinks, kv_pattern, attn_gate or an encoder")
	case n.TemperatureFloor < 0:
		return errAt(s.Pos("network_structure.temperature_floor"), "network_structure.temperature_floor: have %d, want 0 (none) or more", n.TemperatureFloor)
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
