"""Puts configurations into the form of transformers 4, in which most models are published: rope_theta and rope_scaling at the
top level, and no key that has its default in all classes. The other folders have the form of transformers 5."""

import transformers as tf

NAMES = {
    "llama", "llama_bias_linear", "llama_dynamic", "llama_llama3", "llama_yarn", "apertus", "mistral", "qwen2", "phi3", "phi3_longrope_long", "granite", "gemma", "gemma3", "olmo", "olmo3", "stablelm", "cohere_qk_norm", "smollm3",
    "gpt2", "gpt_bigcode", "gpt_neox", "falcon_7b", "falcon_rw", "opt", "bloom", "phi", "nemotron", "glm4", "exaone4", "persimmon", "mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss", "granitemoe", "ernie4_5_moe", "glm4_moe",
    "deepseek_v2", "deepseek_v3", "mpt", "bert", "bert_classes", "roberta", "distilbert", "albert", "modernbert", "modernbert_classes", "data2vec_text", "t5_gated", "umt5", "bart", "marian", "blenderbot",
}
RENAMED = {"qwen3_moe": {"num_local_experts": "num_experts"}}
DEFAULTS = {"tie_word_embeddings": True, "is_decoder": False, "add_cross_attention": False}


def rewrite(name, config, class_default):
    if name not in NAMES:
        return
    rope = config.pop("rope_parameters", {})
    if "full_attention" in rope:
        modern = config["model_type"] == "modernbert"
        config["local_rope_theta" if modern else "rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = dict(rope["full_attention"])
        if modern:
            config["global_rope_theta"] = rope.pop("rope_theta")
            config.pop("layer_types")
        elif config["model_type"] == "olmo3":  # has one base
            del config["rope_local_base_freq"]
    if config["model_type"] == "gpt_neox":
        config.update(rotary_emb_base=rope.pop("rope_theta"), rotary_pct=rope.pop("partial_rotary_factor"))
    config.update({k: rope.pop(k) for k in ("rope_theta", "partial_rotary_factor") if k in rope})
    if rope and rope != {"rope_type": "default"}:
        config["rope_scaling"] = rope
    if "scale_decoder_outputs" in config:  # T5 ties its matrices where it scales
        config["tie_word_embeddings"] = config.pop("scale_decoder_outputs")
    if "attn_config" in config:
        config["attn_config"] = {k: v for k, v in config["attn_config"].items() if k not in tf.PreTrainedConfig().to_dict()}
    for old, new in RENAMED.get(name, {}).items():
        config[new] = config.pop(old)
    for key, default in DEFAULTS.items():
        if config.get(key) == default == class_default.get(key):
            del config[key]
