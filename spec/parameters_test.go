package spec

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

// absent is the value that removes a parameter from config.json.
var absent = new(int)

// changedConfig returns the config.json of a tiny model with parameters changed.
func changedConfig(t *testing.T, model string, change map[string]any) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/families", model, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	maps.Copy(config, change)
	maps.DeleteFunc(config, func(_ string, v any) bool { return v == absent })
	return config
}

// TestParameterDefaults checks that a parameter missing in config.json has the
// default of transformers. A null may have another meaning.
// TestKeys finds such parameters.
func TestParameterDefaults(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	for _, c := range []struct {
		model  string
		change keys
		key    string
		want   any
	}{
		{"llama", keys{"rms_norm_eps": absent}, "norm_eps", 1e-6},
		{"mistral", keys{"rms_norm_eps": absent}, "norm_eps", 1e-6},
		{"mixtral", keys{"rms_norm_eps": absent}, "norm_eps", 1e-5},
		{"mixtral", keys{"rope_theta": absent}, "rope_theta", 1e6},
		{"helium", keys{"rope_theta": absent}, "rope_theta", 1e5},
		{"smollm3", keys{"rope_theta": absent}, "rope_theta", 2e6},
		{"persimmon", keys{"rope_theta": absent}, "rope_theta", 10000.0},
		{"phimoe", keys{"rope_theta": absent}, "rope_theta", 1e6},
		{"ernie4_5_moe", keys{"rope_theta": absent}, "rope_theta", 5e5},
		{"granite", keys{"attention_multiplier": absent}, "attn_scale", 1.0},
		{"granite", keys{"attention_multiplier": absent, "model_file_format": "gguf"}, "attn_scale", 0.0},
		{"dots1", keys{"norm_topk_prob": absent}, "moe_norm_top_k_prob", false},
		{"glm4_moe", keys{"norm_topk_prob": absent}, "moe_norm_top_k_prob", true},
		{"deepseek_v3_halves", keys{"rope_interleave": absent}, "qk_column_order", 1},
		{"deepseek_v3_halves", keys{"rope_interleave": false}, "qk_column_order", 2},
		{"gemma2", keys{"attn_logit_softcapping": absent}, "attn_softcap", 50.0},
		{"gemma2", keys{"attn_logit_softcapping": nil}, "attn_softcap", 0.0},
		{"gemma2", keys{"final_logit_softcapping": absent}, "logit_softcap", 30.0},
		{"gemma2", keys{"final_logit_softcapping": nil}, "logit_softcap", 0.0},
		{"gemma3", keys{"final_logit_softcapping": absent}, "logit_softcap", 0.0},
		{"modernbert", keys{"local_rope_theta": absent}, "rope_local_theta", 10000.0},
		{"modernbert", keys{"local_rope_theta": nil}, "rope_local_theta", 160000.0},
		{"exaone4", keys{"layer_types": absent}, "attention_pattern", []string{"sliding", "sliding", "sliding", "full"}},
		{"gpt_neo", keys{"attention_layers": absent, "attention_types": absent}, "attention_pattern", []string{"full", "sliding"}},
		{"t5_gated", keys{"dense_act_fn": absent}, "activation_function", "gelu"},
		{"t5_gated", keys{"dense_act_fn": "relu"}, "activation_function", "relu"},
	} {
		s, err := Parse("config.json", []byte("iflow: 1\n"), changedConfig(t, c.model, c.change), Options{})
		if err != nil {
			t.Errorf("%s %v: %v", c.model, c.change, err)
			continue
		}
		if have := s.Network.Param(c.key); !sameParam(have, c.want) {
			t.Errorf("%s %v: %s is %v, want %v", c.model, c.change, c.key, have, c.want)
		}
	}
	for model, factor := range map[string]float64{"gpt_oss": 32, "apertus": 8} {
		for _, none := range []any{absent, nil} {
			s, err := Parse("config.json", []byte("iflow: 1\n"), changedConfig(t, model, keys{"rope_scaling": none, "rope_parameters": none}), Options{})
			if err != nil || s.Network.Params["rope_scaling.factor"] != factor {
				t.Errorf("%s without rope_scaling: %v", model, err)
			}
		}
	}
}

// TestHeadBiasNames checks that the bias of a masked-LM head is read under its own
// name, under that of the projection, or under both, and is never omitted.
func TestHeadBiasNames(t *testing.T) {
	t.Parallel()
	for model, names := range map[string][2]string{"bert_mlm": {"cls.predictions.bias", "cls.predictions.decoder.bias"},
		"roberta": {"lm_head.bias", "lm_head.decoder.bias"}, "albert": {"predictions.bias", "predictions.decoder.bias"}} {
		s, err := Load("testdata/families/"+model, Options{})
		if err != nil {
			t.Fatal(err)
		}
		set, err := s.OpenWeights()
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		for _, stored := range [][]string{names[:1], names[1:], names[:]} {
			h := &fakeHeaders{map[string]tensor.DType{}, map[string][]int{}}
			for _, name := range HeadersOf(set).Names() {
				dtype, shape, _ := HeadersOf(set).Lookup(name)
				as := []string{name}
				if name == names[0] {
					as = stored
				}
				for _, n := range as {
					h.dtypes[n], h.shapes[n] = dtype, shape
				}
			}
			m, err := Resolve(s, h)
			if err != nil {
				t.Errorf("%s with %v: %v", model, stored, err)
				continue
			}
			mod, err := Lower(m)
			if err != nil || !strings.Contains(mod.String(), "from "+strconv.Quote(stored[len(stored)-1])) {
				t.Errorf("%s with %v: no bias of the head (%v)", model, stored, err)
			}
		}
	}
}

// TestParametersRefused checks that an unsupported parameter value that changes the
// results of transformers is an error.
func TestParametersRefused(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	for _, c := range []struct {
		model  string
		change keys
		want   string
	}{
		{"modernbert", keys{"rope_scaling": map[string]any{"rope_type": "linear", "factor": 2.0}}, "rope_scaling: have"},
		{"ernie4_5_moe", keys{"moe_norm_min": 1.0}, "moe_norm_min: have 1"},
		{"exaone4", keys{"layer_types": absent, "sliding_window_pattern": 3.0}, "sliding_window_pattern: have 3"},
		{"gpt_neo", keys{"attention_layers": absent}, "attention_types: have"},
		{"t5", keys{"dense_act_fn": absent, "feed_forward_proj": "gelu"}, `feed_forward_proj: have "gelu"`},
		{"deberta", keys{"talking_head": true}, "talking_head: have true"},
		{"deberta_v2_conv", keys{"conv_kernel_size": 4.0}, "conv_kernel_size: have 4"},
		{"deberta_v2_conv", keys{"conv_act": "laplace"}, "hyper.convolution_activation: expression \"act($conv_act | tanh)\": the activation is not available (name \"laplace\""},
		{"mpnet", keys{"relative_attention_num_buckets": 64.0}, "relative_attention_num_buckets: have 64"},
		{"bert", keys{"position_embedding_type": "relative_key"}, "position_embedding: relative_key is not available"},
	} {
		_, err := Parse("config.json", []byte("iflow: 1\n"), changedConfig(t, c.model, c.change), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: have error %v\nwant %s", c.model, c.change, err, c.want)
		}
	}
	for _, c := range []struct {
		model  string
		change keys
		want   string
	}{
		{"modernbert", keys{"local_attention": 1.0}, "attention_pattern has sliding layers, but sliding_window is 0"},
		{"dots1", keys{"num_experts_per_tok": 3.0}, "want at most as many experts per token as moe_top_groups have (grouped True, moe_top_k 3"},
		{"deberta_v2_conv", keys{"conv_groups": 3.0}, "conv_groups does not divide the width (n 16, conv_groups 3)"},
		{"deberta_v2_conv", keys{"conv_kernel_size": 0.0}, "maps to enc.convolution.bias, which no module of this network reads"},
		{"mixtral", keys{"hidden_act": "tanh"}, `experts do not have this activation (activation_function "tanh"`},
		{"deepseek_v3", keys{"head_dim": 3.0}, "head_dim: want qk_rope_head_dim, or that and qk_nope_head_dim (head_dim 3, qk_rope_head_dim 4"},
		{"deepseek_v3", keys{"qk_rope_head_dim": 3.0, "head_dim": absent}, "want an even number of rotated channels (latent_attention True, qk_rope_head_dim 3)"},
		{"bart", keys{"encoder_attention_heads": absent}, "hyper-parameter encoder_attention_heads: missing"},
	} {
		if err := lowers(changedFolder(t, c.model, c.change)); err == nil || strings.Contains(err.Error(), "bug") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: have error %v\nwant %s", c.model, c.change, err, c.want)
		}
	}
}

// TestNoPositionAttention lowers a DeBERTa without c2p and p2c: it knows the tensors of relative
// positions, which nothing reads.
func TestNoPositionAttention(t *testing.T) {
	t.Parallel()
	if err := lowers(changedFolder(t, "deberta_v2", map[string]any{"pos_att_type": []any{}})); err != nil {
		t.Error(err)
	}
}

// changedFolder returns the folder of a family's model with other keys in config.json.
func changedFolder(t *testing.T, model string, change map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	raw, err := json.Marshal(changedConfig(t, model, change))
	if err != nil {
		t.Fatal(err)
	}
	weights, err := os.ReadFile(filepath.Join("testdata/families", model, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"config.json": raw, "model.safetensors": weights} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lowers returns the error of lowering a folder's model.
func lowers(dir string) error {
	s, err := Load(dir, Options{})
	if err != nil {
		return err
	}
	set, err := s.OpenWeights()
	if err != nil {
		return err
	}
	defer set.Close()
	m, err := Resolve(s, HeadersOf(set))
	if err != nil {
		return err
	}
	_, err = Lower(m)
	return err
}
