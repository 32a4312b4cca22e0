package spec

import (
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
}

// Upper bounds of sizes, far above any real model; they keep products inside an int.
const (
	maxWidth  = 1 << 24
	maxLayers = 1 << 14
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
	s.vocabulary(&h)
	h.Embed = h.Hidden
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
	if h.Heads%h.KVHeads != 0 && !s.Network.is("latent_attention") {
		return errAt(s.Pos("hyper.num_key_value_heads"), "num_key_value_heads: have %d, want a divisor of num_attention_heads %d", h.KVHeads, h.Heads)
	}
	n := &s.Network
	stated, value := n.number("head_dim"), n.number("v_head_dim")
	h.HeadDim = stated
	if n.is("latent_attention") {
		h.KVHeads = h.Heads
		rest, rotated, rank := n.number("qk_nope_head_dim"), n.number("qk_rope_head_dim"), n.number("kv_lora_rank")
		if stated != 0 && stated != rotated && stated != rest+rotated {
			return errAt(s.Pos("network_structure.head_dim"), "head_dim: have %d, want qk_rope_head_dim %d or that and qk_nope_head_dim %d", stated, rotated, rest)
		}
		h.HeadDim = rest + rotated
		if rest <= 0 || rotated <= 0 || value <= 0 || rank <= 0 {
			return errAt(s.Pos("network_structure.latent_attention"), "network_structure.latent_attention: qk_nope_head_dim %d, qk_rope_head_dim %d, v_head_dim %d, kv_lora_rank %d; want all above 0", rest, rotated, value, rank)
		}
	}
	if h.HeadDim == 0 {
		if h.Hidden%h.Heads != 0 {
			return errAt(s.Pos("hyper.hidden_size"), "hidden_size %d is no multiple of num_attention_heads %d; give head_dim", h.Hidden, h.Heads)
		}
		h.HeadDim = h.Hidden / h.Heads
	}
	h.VDim = h.HeadDim
	if value > 0 {
		h.VDim = value
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

// checkConsistency returns an error for keys that contradict each other.
func (s *Spec) checkConsistency() error {
	if s.PaddedVocabSize > 0 && s.PaddedVocabSize < s.VocabSize {
		return errAt(s.Pos("padded_vocab_size"), "padded_vocab_size: have %d, less than vocab_size %d", s.PaddedVocabSize, s.VocabSize)
	}
	return nil
}
