"""Decoders with several head sizes, shared KV caches and other state that layers share, for make.py, in the same form as
its tables."""

FULL, SLIDE = "full_attention", "sliding_attention"


def llm(**kw):
    d = dict(hidden_size=24, intermediate_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
    return {k: v for k, v in {**d, **kw}.items() if v is not None}


def gemma4(**kw):
    d = dict(num_hidden_layers=6, head_dim=8, global_head_dim=12, sliding_window=8, layer_types=[SLIDE, SLIDE, FULL, SLIDE, SLIDE, FULL], num_kv_shared_layers=3, hidden_size_per_layer_input=6, vocab_size_per_layer_input=40)
    return llm(**{**d, **kw})


def gemma3n(**kw):
    d = dict(num_hidden_layers=5, head_dim=8, sliding_window=8, layer_types=[SLIDE, SLIDE, FULL, SLIDE, FULL], num_kv_shared_layers=2, hidden_size_per_layer_input=6, vocab_size_per_layer_input=36, laurel_rank=5, activation_sparsity_pattern=[0.7, 0.5, 0.0, 0.0, 0.0],
             intermediate_size=[32, 32, 40, 40, 32])
    return llm(**{**d, **kw})


LLAMA4 = dict(num_hidden_layers=4, head_dim=8, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, intermediate_size=12, intermediate_size_mlp=32, moe_layers=[1, 2], no_rope_layers=[1, 1, 0, 1], attention_chunk_size=9, floor_scale=4, attn_scale=0.3)

MODELS = {
    "llama4": ("Llama4ForCausalLM", "Llama4TextConfig", llm(**LLAMA4)),
    "gemma3n": ("Gemma3nForCausalLM", "Gemma3nTextConfig", gemma3n()),
    "gemma4": ("Gemma4ForCausalLM", "Gemma4TextConfig", gemma4(use_double_wide_mlp=True)),
    "gemma4_moe": ("Gemma4ForCausalLM", "Gemma4TextConfig", gemma4(layer_types=[SLIDE, FULL, SLIDE, FULL], num_hidden_layers=4, num_kv_shared_layers=0, hidden_size_per_layer_input=0, attention_k_eq_v=True, num_global_key_value_heads=1, enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=12, tie_word_embeddings=False, final_logit_softcapping=5.0)),
    "dbrx": ("DbrxForCausalLM", "DbrxConfig", dict(d_model=24, n_heads=4, n_layers=2, max_seq_len=128, attn_config=dict(kv_n_heads=2, clip_qkv=0.8, rope_theta=500.0), ffn_config=dict(ffn_hidden_size=12, moe_num_experts=4, moe_top_k=2, moe_normalize_expert_weights=2.0))),
    "diffllama": ("DiffLlamaForCausalLM", "DiffLlamaConfig", llm(num_hidden_layers=3, head_dim=8)),
    "longcat_flash": ("LongcatFlashForCausalLM", "LongcatFlashConfig", dict(hidden_size=24, num_layers=2, num_attention_heads=2, ffn_hidden_size=32, q_lora_rank=10, kv_lora_rank=12, qk_nope_head_dim=6, qk_rope_head_dim=4, head_dim=4, v_head_dim=5, moe_topk=3, n_routed_experts=4, zero_expert_num=2, expert_ffn_hidden_size=12, max_position_embeddings=128)),
}
