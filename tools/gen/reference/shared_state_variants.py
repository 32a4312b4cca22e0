"""Decoders with several head sizes, shared KV caches, embeddings for each layer, chunked or differential attention, for
breadth.py. They need transformers 5.24; with an older one they are left out."""

import transformers as tf

FULL, SLIDE, CHUNK = "full_attention", "sliding_attention", "chunked_attention"
NEW = tuple(int(x) for x in tf.__version__.split(".")[:2]) >= (5, 24)


def add(family, llm):
    """Adds the families with breadth_variants' functions."""
    if not NEW:
        return
    gemma4(family, llm)


def gemma4(family, llm):
    pattern = [SLIDE, SLIDE, FULL, SLIDE, SLIDE, FULL]
    base = llm(num_hidden_layers=6, head_dim=12, global_head_dim=24, hidden_size_per_layer_input=8, vocab_size_per_layer_input=96, sliding_window=8, layer_types=pattern)
    moe = dict(enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=24)
    full = dict(rope_type="proportional", partial_rotary_factor=0.5, rope_theta=20000.0)
    def published(**kw):
        return dict(_edit=dict(per_layer_config=None, **kw))
    family("gemma4", "Gemma4ForCausalLM", "Gemma4TextConfig", base,
           plain={}, shared=dict(num_kv_shared_layers=3), wide=dict(num_kv_shared_layers=2, use_double_wide_mlp=True), alternative=dict(attention_k_eq_v=True), heads=dict(attention_k_eq_v=True, num_global_key_value_heads=1),
           ungated=dict(num_global_key_value_heads=1), moe=moe, all=dict(moe, attention_k_eq_v=True, num_global_key_value_heads=1, num_kv_shared_layers=3, use_double_wide_mlp=True), nople=dict(hidden_size_per_layer_input=0),
           bias=dict(attention_bias=True, num_kv_shared_layers=3), biaskv=dict(attention_bias=True, attention_k_eq_v=True), untied=dict(tie_word_embeddings=False), cap=dict(final_logit_softcapping=5.0), eps=dict(rms_norm_eps=1e-2),
           act=dict(hidden_activation="silu"), rope=dict(rope_parameters={FULL: full, SLIDE: dict(rope_type="linear", factor=2.0, rope_theta=500.0)}), factor=dict(rope_parameters={FULL: dict(full, factor=2.0), SLIDE: dict(rope_type="default", rope_theta=10000.0)}),
           same=dict(global_head_dim=12), pattern=dict(layer_types=None, num_hidden_layers=7), odd=dict(layer_types=[SLIDE, FULL, SLIDE, SLIDE, SLIDE]  , num_hidden_layers=5), vocab=dict(vocab_size=80),
           published=dict(global_head_dim=24, attention_k_eq_v=True, num_global_key_value_heads=1, **published(global_head_dim=24, num_global_key_value_heads=1)), older=published(global_head_dim=24, layer_types=pattern, rope_parameters=dict({FULL: full, SLIDE: dict(rope_type="default", rope_theta=10000.0)})) | dict(rope_parameters={FULL: full, SLIDE: dict(rope_type="default", rope_theta=10000.0)}),
           defaults=dict(rope_parameters=None, _edit=dict(rope_parameters=None)), long=dict(_prompt=150, _steps=4, max_position_embeddings=256, num_kv_shared_layers=3), windows=dict(sliding_window=64), allmha=dict(num_key_value_heads=4, num_kv_shared_layers=3), multi=dict(num_key_value_heads=1, num_kv_shared_layers=1, layer_types=[FULL, SLIDE, FULL, SLIDE, FULL, FULL]),
           mixed=dict(per_layer_config={2: dict(head_dim=20, num_key_value_heads=4), 5: dict(head_dim=20, num_key_value_heads=4)}))
