package spec

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// maxConfig is the maximum size in bytes of config.json and of a model spec.
// Real files are a few kB, or a few MB with a vocabulary of special tokens.
const maxConfig = 16 << 20

// readConfig reads a config.json.
func readConfig(path string) (map[string]any, error) {
	b, err := regular.ReadIn(filepath.Dir(path), filepath.Base(path), maxConfig)
	if err != nil {
		return nil, err
	}
	var c map[string]any
	if err := json.Unmarshal(withoutInfinities(b), &c); err != nil {
		return nil, &Error{Pos: Pos{File: path}, What: "not a JSON object: " + err.Error()}
	}
	if c == nil {
		return nil, &Error{Pos: Pos{File: path}, What: "have null, want a JSON object"}
	}
	return textConfig(c), nil
}

// infinities matches texts, and the numbers that Python writes although JSON has none.
// Such a number stands for the absence of a limit.
var infinities = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|([\[,:]\s*)(?:-?(?:Infinity|NaN)\b|\{\s*"__float__"\s*:\s*"(?:-?Infinity|NaN)"\s*\})`)

// withoutInfinities replaces infinite numbers by null.
func withoutInfinities(src []byte) []byte {
	return infinities.ReplaceAllFunc(src, func(match []byte) []byte {
		if match[0] == '"' {
			return match
		}
		return append(match[:1:1], "null"...)
	})
}

// textConfig merges the text_config of a multimodal model into the top level of its
// configuration. The values of text_config take precedence, except for whether the whole
// model's output matrix is tied. Older configurations have the text's values at the top
// level, perhaps with another copy in text_config. That of a model that also speaks is in
// thinker_config.
func textConfig(c map[string]any) map[string]any {
	if thinker, speaks := c["thinker_config"].(map[string]any); speaks {
		c = thinker
	}
	out := maps.Clone(c)
	text, nested := c["text_config"].(map[string]any)
	if nested && (c["hidden_size"] == nil || text["hidden_size"] != nil) {
		maps.Copy(out, text)
		if tied := c["tie_word_embeddings"]; tied != nil {
			out["tie_word_embeddings"] = tied
		}
		out["text_only"] = true
	}
	if _, vision := c["vision_config"].(map[string]any); vision {
		out["text_only"] = true
	}
	ropeForms(out)
	return out
}

// ropeForms reduces the forms of rope's parameters. Of a section under both of its names,
// transformers reads rope_scaling, the older one. rope_parameters may have a section for
// each kind of layers instead; that of full_attention may be missing.
func ropeForms(config map[string]any) {
	older, _ := config["rope_scaling"].(map[string]any)
	newer, _ := config["rope_parameters"].(map[string]any)
	_, full := newer["full_attention"]
	_, sliding := newer["sliding_attention"]
	switch {
	case !full && !sliding && len(older) > 0:
		delete(config, "rope_parameters")
	case (full || sliding) && newer["full_attention"] == nil:
		newer = maps.Clone(newer)
		newer["full_attention"] = map[string]any{}
		config["rope_parameters"] = newer
	}
}

// ggufKeys maps GGUF metadata keys (after "<architecture>.") to the names of
// config.json. The keys are documented in ggml/docs/gguf.md.
var ggufKeys = []struct{ gguf, config string }{
	{"context_length", "max_position_embeddings"},
	{"embedding_length", "hidden_size"},
	{"block_count", "num_hidden_layers"},
	{"feed_forward_length", "intermediate_size"},
	{"vocab_size", "vocab_size"},
	{"attention.head_count", "num_attention_heads"},
	{"attention.head_count_kv", "num_key_value_heads"},
	{"attention.key_length", "head_dim"},
	{"attention.value_length", "v_head_dim"},
	{"attention.key_length_mla", "head_dim"}, // where key_length is that of the compressed keys
	{"attention.value_length_mla", "v_head_dim"},
	{"attention.q_lora_rank", "q_lora_rank"},
	{"attention.kv_lora_rank", "kv_lora_rank"},
	{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
	{"attention.layer_norm_epsilon", "layer_norm_eps"},
	{"attention.sliding_window", "sliding_window"},
	{"attention.sliding_window_pattern", "sliding_window_pattern"},
	{"attention.key_length_swa", "head_dim_swa"}, // of layers with a window
	{"attention.shared_kv_layers", "num_kv_shared_layers"},
	{"embedding_length_per_layer_input", "hidden_size_per_layer_input"},
	{"attention.scale", "attention_multiplier"},
	{"attention.clamp_kqv", "clip_qkv"},
	{"attention.max_alibi_bias", "max_alibi_bias"},
	{"attention.causal", "causal"},
	{"attn_logit_softcapping", "attn_logit_softcapping"},
	{"final_logit_softcapping", "final_logit_softcapping"},
	{"logit_scale", "logit_scale"},
	{"embedding_scale", "embedding_multiplier"},
	{"residual_scale", "residual_multiplier"},
	{"use_parallel_residual", "use_parallel_residual"},
	{"rope.dimension_count", "rope_dim"},
	{"rope.dimension_sections", "mrope_section"},
	{"rope.freq_base", "rope_theta"},
	{"rope.freq_base_swa", "rope_local_base_freq"},
	{"rope.scaling.type", "rope_scaling.rope_type"},
	{"rope.scaling.factor", "rope_scaling.factor"},
	{"rope.scaling.attn_factor", "rope_scaling.attention_factor"},
	{"rope.scaling.yarn_attn_factor", "rope_scaling.attention_factor"},
	{"rope.scaling.original_context_length", "rope_scaling.original_max_position_embeddings"},
	{"rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast"},
	{"rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow"},
	{"rope.scaling.yarn_log_multiplier", "rope_scaling.yarn_log_multiplier"},
	{"attention.recurrent_layers", "recurrent_layers"},
	{"full_attention_interval", "full_attention_interval"},
	{"leading_dense_block_count", "first_k_dense_replace"},
	{"expert_weights_scale", "routed_scaling_factor"},
	{"expert_weights_norm", "norm_topk_prob"},
	{"expert_group_count", "n_group"},
	{"expert_group_used_count", "topk_group"},
	{"expert_feed_forward_length", "moe_intermediate_size"},
	{"expert_shared_feed_forward_length", "shared_intermediate_size"},
	{"nextn_predict_layers", "num_nextn_predict_layers"},
	{"expert_gating_func", "expert_gating_func"},
	{"moe_every_n_layers", "moe_every_n_layers"},
	{"interleave_moe_layer_step", "interleave_moe_layer_step"},
	{"altup.active_idx", "altup_active_idx"},
	{"altup.num_inputs", "altup_num_inputs"},
	{"activation_sparsity_scale", "activation_sparsity_scale"},
	{"attention.indexer.head_count", "index_n_heads"},
	{"attention.indexer.key_length", "index_head_dim"},
	{"attention.indexer.top_k", "index_topk"},
	{"attention.indexer.types", "indexer_layers"}, // whether a layer has an indexer of its own
	{"attention.output_group_count", "o_groups"},
	{"attention.compress_ratios", "compress_ratios"},
	{"attention.compress_rope_freq_base", "compress_rope_theta"},
	{"hyper_connection.count", "hc_mult"},
	{"hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"},
	{"hyper_connection.epsilon", "hc_eps"},
	{"swiglu_clamp_exp", "swiglu_limit"},
	{"wkv.head_size", "head_dim"},
	{"kda.head_dim", "linear_head_dim"},
	{"ssm.inner_size", "ssm_inner_size"},
	{"ssm.state_size", "ssm_state_size"},
	{"ssm.time_step_rank", "ssm_heads"},
	{"ssm.group_count", "ssm_groups"},
	{"rope.scaling.finetuned", "rope_finetuned"},
	{"ssm.dt_b_c_rms", "ssm_norms"},
	{"expert_count", "num_local_experts"},
	{"expert_used_count", "num_experts_per_tok"},
}

// ggufTokens maps the token id keys of GGUF to the names of config.json.
var ggufTokens = []struct{ gguf, config string }{
	{"tokenizer.ggml.bos_token_id", "bos_token_id"},
	{"tokenizer.ggml.eos_token_id", "eos_token_id"},
	{"tokenizer.ggml.padding_token_id", "pad_token_id"},
	{"tokenizer.ggml.unknown_token_id", "unk_token_id"},
}

// ggufConfig converts GGUF metadata to the form of config.json.
func ggufConfig(meta map[string]any) map[string]any {
	c := map[string]any{"model_file_format": "gguf", "tie_word_embeddings": false} // unless the file has no output matrix
	arch, _ := meta["general.architecture"].(string)
	c["model_type"] = arch
	for _, k := range ggufKeys {
		v, ok := meta[arch+"."+k.gguf]
		if !ok {
			continue
		}
		outer, inner, nested := strings.Cut(k.config, ".")
		if !nested {
			ggufValue(c, k.config, plain(v))
			continue
		}
		m, _ := c[outer].(map[string]any)
		if m == nil {
			m = map[string]any{}
			c[outer] = m
		}
		m[inner] = plain(v)
	}
	ggufYarn(c)
	ggufSparsity(c)
	if n, ok := number(c["num_nextn_predict_layers"]); ok { // which block_count includes
		if layers, ok := number(c["num_hidden_layers"]); ok {
			c["num_hidden_layers"] = layers - n
		}
	}
	for _, k := range ggufTokens {
		if v, ok := meta[k.gguf]; ok {
			c[k.config] = plain(v)
		}
	}
	if tokens, ok := meta["tokenizer.ggml.tokens"].([]string); ok && c["vocab_size"] == nil {
		c["vocab_size"] = float64(len(tokens))
	}
	return c
}

// ggufYarn sets mscale and mscale_all_dim. Files have a tenth of the second, and llama.cpp
// takes the first to equal it, as it does in the published models of DeepSeek.
func ggufYarn(c map[string]any) {
	scaling, _ := c["rope_scaling"].(map[string]any)
	if tenth, stated := number(scaling["yarn_log_multiplier"]); stated {
		scaling["mscale"], scaling["mscale_all_dim"] = 10*tenth, 10*tenth
	}
}

// ggufSparsity converts quantiles of a standard normal distribution to fractions.
func ggufSparsity(c map[string]any) {
	list, ok := c["activation_sparsity_scale"].([]any)
	if !ok {
		return
	}
	out := make([]any, len(list))
	for i, v := range list {
		x, _ := number(v)
		out[i] = float64(float32(math.Erfc(-x/math.Sqrt2) / 2))
	}
	c["activation_sparsity_pattern"] = out
}

// ggufValue sets a parameter. A list with a number for each layer, 0 for layers without
// the module, is NAME_by_layer, and NAME is the number of the others if they have one.
// A number of heads or an FFN of 0 means that there is none.
func ggufValue(c map[string]any, name string, v any) {
	switch name {
	case "num_attention_heads", "num_key_value_heads", "intermediate_size", "swiglu_limit":
	default:
		c[name] = v
		return
	}
	list, ok := v.([]any)
	if !ok {
		if !sameValue(v, 0) {
			c[name] = v
		}
		return
	}
	c[name+"_by_layer"] = list
	for _, x := range list {
		if sameValue(x, 0) {
			continue
		}
		if one, set := c[name]; set && !sameValue(x, one) {
			c[name] = v // they differ
			return
		}
		c[name] = x
	}
}

// plain converts a metadata value to the type that a JSON decoder would return.
func plain(v any) any {
	if f, ok := v.(float32); ok {
		return tensor.Decimal(f)
	}
	if n, ok := number(v); ok {
		return n
	}
	switch list := v.(type) {
	case []int32:
		return plainList(list)
	case []uint32:
		return plainList(list)
	case []float32:
		return plainList(list)
	case []bool:
		out := make([]any, len(list))
		for i, b := range list {
			out[i] = b
		}
		return out
	}
	return v
}

func plainList[T int32 | uint32 | float32](list []T) any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = plain(x)
	}
	return out
}

// llama2cKeys maps the header fields of a llama2.c file to the names of config.json.
var llama2cKeys = []struct{ header, config string }{
	{"dim", "hidden_size"}, {"hidden_dim", "intermediate_size"}, {"n_layers", "num_hidden_layers"},
	{"n_heads", "num_attention_heads"}, {"n_kv_heads", "num_key_value_heads"}, {"vocab_size", "vocab_size"},
	{"seq_len", "max_position_embeddings"},
}

// llama2cConfig converts a llama2.c header to the form of config.json. The
// constants are those of llama2.c's run.c; the file does not store them.
func llama2cConfig(meta map[string]any) map[string]any {
	c := map[string]any{"model_file_format": "llama2.c", "model_type": "llama", "rms_norm_eps": 1e-5, "rope_theta": 10000.0}
	for _, k := range llama2cKeys {
		if n, ok := number(meta[k.header]); ok {
			c[k.config] = math.Abs(n)
		}
	}
	if shared, ok := meta["shared_classifier"].(bool); ok {
		c["tie_word_embeddings"] = shared
	}
	return c
}
