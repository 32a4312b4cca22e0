package main

import "fmt"

// A hybrid is a model whose layers are not all attention: its config.json, and its
// tensors.
type hybrid struct {
	config  map[string]any
	tensors func(layers int, add func(name string, d ...int))
}

// hybrids are those of published models.
var hybrids = map[string]hybrid{
	"qwen3.5-0.8b": {map[string]any{
		"model_type": "qwen3_5_text", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 8, "num_key_value_heads": 2,
		"head_dim": 256, "intermediate_size": 3584, "vocab_size": 248320, "max_position_embeddings": 262144, "rms_norm_eps": 1e-6, "hidden_act": "silu",
		"full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 16,
		"rope_parameters":     map[string]any{"rope_theta": 10000000.0, "rope_type": "default", "partial_rotary_factor": 0.25},
		"tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": 2,
	}, qwen35},
	"mamba2-780m": {map[string]any{
		"model_type": "mamba2", "hidden_size": 1536, "num_hidden_layers": 48, "num_heads": 48, "head_dim": 64, "n_groups": 1, "state_size": 128, "conv_kernel": 4, "expand": 2,
		"vocab_size": 50288, "hidden_act": "silu", "layer_norm_epsilon": 1e-5, "use_conv_bias": true, "use_bias": false, "rms_norm": true,
		"tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0,
	}, mamba2},
}

func qwen35(layers int, add func(name string, d ...int)) {
	const width, ffn, mixed = 1024, 3584, 2048
	add("model.embed_tokens.weight", 248320, width)
	for i := range layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		add(p+"input_layernorm.weight", width)
		if i%4 == 3 {
			a := p + "self_attn."
			add(a+"q_proj.weight", 2*mixed, width)
			add(a+"k_proj.weight", 512, width)
			add(a+"v_proj.weight", 512, width)
			add(a+"o_proj.weight", width, mixed)
			add(a+"q_norm.weight", 256)
			add(a+"k_norm.weight", 256)
		} else {
			a := p + "linear_attn."
			add(a+"in_proj_qkv.weight", 3*mixed, width)
			add(a+"in_proj_z.weight", mixed, width)
			add(a+"in_proj_a.weight", 16, width)
			add(a+"in_proj_b.weight", 16, width)
			add(a+"conv1d.weight", 3*mixed, 1, 4)
			add(a+"A_log", 16)
			add(a+"dt_bias", 16)
			add(a+"norm.weight", 128)
			add(a+"out_proj.weight", width, mixed)
		}
		add(p+"post_attention_layernorm.weight", width)
		add(p+"mlp.gate_proj.weight", ffn, width)
		add(p+"mlp.up_proj.weight", ffn, width)
		add(p+"mlp.down_proj.weight", width, ffn)
	}
	add("model.norm.weight", width)
}

func mamba2(layers int, add func(name string, d ...int)) {
	const width, inner, heads, conv = 1536, 3072, 48, 3072 + 2*128
	add("backbone.embeddings.weight", 50288, width)
	for i := range layers {
		p := fmt.Sprintf("backbone.layers.%d.", i)
		add(p+"norm.weight", width)
		p += "mixer."
		add(p+"A_log", heads)
		add(p+"D", heads)
		add(p+"dt_bias", heads)
		add(p+"conv1d.weight", conv, 1, 4)
		add(p+"conv1d.bias", conv)
		add(p+"in_proj.weight", inner+conv+heads, width)
		add(p+"norm.weight", inner)
		add(p+"out_proj.weight", width, inner)
	}
	add("backbone.norm_f.weight", width)
}
