"""Decoders with several head sizes, shared KV caches, embeddings for each layer, chunked or differential attention, for
breadth.py."""

FULL, SLIDE, CHUNK = "full_attention", "sliding_attention", "chunked_attention"


def add(family, llm):
    """Adds the families with breadth_variants' functions."""
    gemma4(family, llm)
    gemma3n(family, llm)
    llama4(family, llm)
    dbrx(family, llm)
    diffllama(family, llm)
    longcat(family, llm)


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
    one = {k: v for k, v in base.items() if "per_layer_input" not in k}
    family("gemma4_unified", "Gemma4UnifiedForCausalLM", "Gemma4UnifiedTextConfig", one, plain={}, keys=dict(attention_k_eq_v=True, num_global_key_value_heads=1, num_kv_shared_layers=3), wide=dict(num_kv_shared_layers=2, use_double_wide_mlp=True), window=dict(sliding_window=1024, _edit=dict(sliding_window=None)))


def gemma3n(family, llm):
    pattern = [SLIDE, SLIDE, FULL, SLIDE, SLIDE, FULL]
    base = llm(num_hidden_layers=6, head_dim=12, hidden_size_per_layer_input=8, vocab_size_per_layer_input=96, sliding_window=8, layer_types=pattern, num_kv_shared_layers=3, laurel_rank=6, activation_sparsity_pattern=[0.8, 0.8, 0.0, 0.0, 0.5, 0.0])
    rope = {FULL: dict(rope_type="default", rope_theta=20000.0), SLIDE: dict(rope_type="default", rope_theta=300.0)}
    old = dict(rope_parameters=None, rope_theta=20000.0, rope_local_base_freq=300.0)
    family("gemma3n", "Gemma3nForCausalLM", "Gemma3nTextConfig", base,
           plain={}, own=dict(num_kv_shared_layers=0), sizes=dict(intermediate_size=[64, 80, 80, 96, 96, 48]), two=dict(altup_num_inputs=2), three=dict(altup_num_inputs=3, altup_active_idx=1), active=dict(altup_active_idx=2), noscale=dict(altup_correct_scale=False), dense=dict(activation_sparsity_pattern=None),
           deep=dict(num_hidden_layers=12, layer_types=None, num_kv_shared_layers=2, activation_sparsity_pattern=None, _edit=dict(activation_sparsity_pattern=None, layer_types=None)),
           bias=dict(attention_bias=True), untied=dict(tie_word_embeddings=False), cap=dict(final_logit_softcapping=5.0), eps=dict(rms_norm_eps=1e-2), act=dict(hidden_activation="silu"), vocab=dict(vocab_size_per_layer_input=80), rope=dict(rope_parameters=rope), old=dict(rope_parameters=rope, _edit=old),
           scaled=dict(rope_parameters={FULL: dict(rope_type="linear", factor=4.0, rope_theta=20000.0), SLIDE: rope[SLIDE]}, _edit=dict(old, rope_scaling=dict(rope_type="linear", factor=4.0))), mha=dict(num_key_value_heads=4), mqa=dict(num_key_value_heads=1), window=dict(sliding_window=64), left=dict(num_kv_shared_layers=1), long=dict(_prompt=150, _steps=4, max_position_embeddings=256), ple=dict(hidden_size_per_layer_input=12))


def llama4(family, llm):
    base = llm(num_hidden_layers=5, head_dim=12, num_local_experts=4, num_experts_per_tok=1, intermediate_size=24, intermediate_size_mlp=80, attention_chunk_size=16, floor_scale=8, attn_scale=0.3, rope_parameters=dict(rope_type="default", rope_theta=10000.0))
    family("llama4", "Llama4ForCausalLM", "Llama4TextConfig", base,
           plain={}, published=dict(attention_chunk_size=8192, floor_scale=8192, attn_scale=0.1, interleave_moe_layer_step=2, moe_layers=None, no_rope_layers=None, layer_types=None), three=dict(num_experts_per_tok=3), layers=dict(moe_layers=[1, 3]), step=dict(interleave_moe_layer_step=2, _edit=dict(moe_layers=None)), rope=dict(no_rope_layers=[0, 1, 1, 0, 1]), interval=dict(no_rope_layer_interval=2, _edit=dict(no_rope_layers=None, layer_types=None)), bias=dict(attention_bias=True),
           llama3=dict(rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)), small=dict(attention_chunk_size=5), untuned=dict(attn_temperature_tuning=False), nonorm=dict(use_qk_norm=False), tied=dict(tie_word_embeddings=True), act=dict(hidden_act="gelu"), eps=dict(rms_norm_eps=1e-2),
           types=dict(layer_types=[CHUNK, FULL, CHUNK, CHUNK, FULL]), full=dict(attention_chunk_size=None), long=dict(_prompt=150, _steps=4, max_position_embeddings=256, attention_chunk_size=64), mqa=dict(num_key_value_heads=1))


def dbrx(family, llm):
    attn, ffn = dict(kv_n_heads=2, clip_qkv=1.0, rope_theta=500.0), dict(ffn_hidden_size=24, moe_num_experts=4, moe_top_k=2)
    base = dict(d_model=48, n_heads=4, n_layers=3, max_seq_len=128, attn_config=attn, ffn_config=ffn)
    def with_ffn(**kw):
        return dict(ffn_config={**ffn, **kw})
    family("dbrx", "DbrxForCausalLM", "DbrxConfig", base, plain={}, mha=dict(attn_config=dict(attn, kv_n_heads=4)), raw=with_ffn(moe_normalize_expert_weights=None), squares=with_ffn(moe_normalize_expert_weights=2.0), one=with_ffn(moe_top_k=1), gelu=with_ffn(ffn_act_fn=dict(name="gelu")), theta=dict(rope_parameters=dict(rope_type="default", rope_theta=500.0)),
           published=dict(rope_parameters=dict(rope_type="default", rope_theta=500.0), _edit=dict(rope_parameters=None, attn_config=dict(attn, rope_theta=500.0, attn_pdrop=0), ffn_config=dict(ffn, moe_normalize_expert_weights=1, moe_jitter_eps=0.01), num_key_value_heads=None)), scaled=dict(rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=2.0)))


def diffllama(family, llm):
    base = llm(num_hidden_layers=4)
    family("diffllama", "DiffLlamaForCausalLM", "DiffLlamaConfig", base, four={}, bias=dict(attention_bias=True), mha=dict(num_key_value_heads=4), wide=dict(head_dim=20), tied=dict(tie_word_embeddings=True), rope=dict(rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=2.0)), eps=dict(rms_norm_eps=1e-2), six=dict(num_attention_heads=6, num_key_value_heads=2, head_dim=8), act=dict(hidden_act="gelu"))


def longcat(family, llm):
    base = dict(hidden_size=48, num_layers=2, num_attention_heads=4, ffn_hidden_size=64, q_lora_rank=20, kv_lora_rank=24, qk_nope_head_dim=12, qk_rope_head_dim=8, head_dim=8, v_head_dim=10, moe_topk=3, n_routed_experts=4, zero_expert_num=3, expert_ffn_hidden_size=24, max_position_embeddings=128)
    yarn = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, mscale=0.7, mscale_all_dim=0.9, rope_theta=10000.0)
    family("longcat_flash", "LongcatFlashForCausalLM", "LongcatFlashConfig", base, plain={}, nozero=dict(zero_expert_num=0), three=dict(num_layers=3, moe_topk=2), yarn=dict(rope_parameters=yarn), bias=dict(attention_bias=True), scale=dict(routed_scaling_factor=1.0), tied=dict(tie_word_embeddings=True), eps=dict(rms_norm_eps=1e-2), many=dict(zero_expert_num=8, moe_topk=5), act=dict(hidden_act="gelu"))
