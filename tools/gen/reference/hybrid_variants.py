"""Hybrid and recurrent models for breadth.py."""

FULL, LINEAR, SLIDE = "full_attention", "linear_attention", "sliding_attention"


def add(family, llm):
    """Adds the families with breadth_variants' functions."""
    def uncached(name, model, config, base, /, **variants):  # with a cache transformers ignores time_step_limit
        family(name, model, config, {**base, "_cached": False}, **variants)

    delta_families(uncached, llm)
    olmo_family(uncached, llm)
    mamba_families(uncached, llm)
    other_families(uncached, llm)


def delta_families(family, llm):
    rope = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25)
    delta = llm(num_hidden_layers=6, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=16, layer_types=[LINEAR, LINEAR, FULL, LINEAR, LINEAR, FULL], rope_parameters=rope)
    experts = dict(moe_intermediate_size=24, shared_expert_intermediate_size=40, num_experts=6, num_experts_per_tok=2)
    family("qwen3_5", "Qwen3_5ForCausalLM", "Qwen3_5TextConfig", delta,
           plain={}, tied=dict(tie_word_embeddings=True), taps=dict(linear_conv_kernel_dim=2), mha=dict(linear_num_key_heads=4, num_key_value_heads=4), wide=dict(linear_num_value_heads=6, linear_value_head_dim=8), bias=dict(attention_bias=True), theta=dict(rope_parameters=dict(rope, rope_theta=1e6, partial_rotary_factor=0.5)), eps=dict(rms_norm_eps=1e-2),
           old=dict(layer_types=None, num_hidden_layers=4, _edit=dict(layer_types=None)), interval=dict(layer_types=[LINEAR, FULL] * 3, _edit=dict(layer_types=None, full_attention_interval=2)), all_linear=dict(layer_types=[LINEAR] * 6), long=dict(_prompt=150, _steps=4, max_position_embeddings=256))
    family("qwen3_5_moe", "Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextConfig", {**delta, **experts, "intermediate_size": None}, plain={}, tied=dict(tie_word_embeddings=True), three=dict(num_experts_per_tok=3, linear_num_key_heads=1))
    family("qwen3_next", "Qwen3NextForCausalLM", "Qwen3NextConfig", {**delta, **experts},
           plain={}, nonorm=dict(norm_topk_prob=False), dense=dict(mlp_only_layers=[0, 3]), step=dict(decoder_sparse_step=2), bias=dict(attention_bias=True, linear_num_key_heads=1), tied=dict(tie_word_embeddings=True, linear_conv_kernel_dim=3),
           old=dict(layer_types=None, num_hidden_layers=4, _edit=dict(layer_types=None, full_attention_interval=4, rope_parameters=None, rope_theta=10000.0, partial_rotary_factor=0.25)))
    mla = dict(num_hidden_layers=5, num_key_value_heads=4, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10, kv_lora_rank=24, moe_intermediate_size=24, num_experts=8, num_experts_per_token=2, num_shared_experts=1)
    kimi = llm(**mla, linear_num_heads=4, linear_head_dim=12, q_lora_rank=None, layer_types=[LINEAR, LINEAR, LINEAR, FULL, LINEAR])
    family("kimi_linear", "KimiLinearForCausalLM", "KimiLinearConfig", kimi,
           plain={}, taps=dict(linear_conv_kernel_dim=3), lora=dict(q_lora_rank=20), groups=dict(num_expert_group=4, topk_group=2), nonorm=dict(moe_renormalize=False, routed_scaling_factor=1.0), shared=dict(num_shared_experts=2, mlp_layer_types=["sparse", "dense", "sparse", "dense", "sparse"]), tied=dict(tie_word_embeddings=True),
           published=dict(_edit=dict(layer_types=None, mlp_layer_types=None, linear_num_heads=None, linear_head_dim=None, linear_conv_kernel_dim=None, first_k_dense_replace=1, moe_layer_freq=1,
                                     linear_attn_config=dict(full_attn_layers=[4], kda_layers=[1, 2, 3, 5], num_heads=4, head_dim=12, short_conv_kernel_size=4))))
    ling = llm(**mla, head_dim=12, layer_group_size=3, num_expert_group=4, topk_group=2, first_k_dense_replace=1)
    family("bailing_hybrid", "BailingHybridForCausalLM", "BailingHybridConfig", ling, plain={}, softplus=dict(kda_safe_gate=False), bound=dict(kda_lower_bound=-2.0), lora=dict(q_lora_rank=20, num_expert_group=1, topk_group=1), group=dict(layer_group_size=2, _edit=dict(layer_types=None, mlp_layer_types=None)), tied=dict(tie_word_embeddings=True))
    family("minimax", "MiniMaxForCausalLM", "MiniMaxConfig", llm(num_hidden_layers=5, num_local_experts=4, num_experts_per_tok=2, head_dim=12, block_size=16, layer_types=[LINEAR, LINEAR, FULL, LINEAR, LINEAR]),
           mixed={}, alphas=dict(full_attn_alpha_factor=1.3, full_attn_beta_factor=0.8, linear_attn_alpha_factor=1.2, linear_attn_beta_factor=0.7, mlp_alpha_factor=1.1, mlp_beta_factor=0.9), gelu=dict(hidden_act="gelu"), heads=dict(num_attention_heads=6, head_dim=8, num_key_value_heads=3), tied=dict(tie_word_embeddings=True), eps=dict(rms_norm_eps=1e-2))


def olmo_family(family, llm):
    olmo = llm(num_hidden_layers=5, num_key_value_heads=4, layer_types=[LINEAR, LINEAR, FULL, LINEAR, FULL], linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=16)
    family("olmo_hybrid", "OlmoHybridForCausalLM", "OlmoHybridConfig", olmo, plain={}, sizes=dict(linear_key_head_dim=None, linear_value_head_dim=None, linear_num_value_heads=None), positive=dict(linear_allow_neg_eigval=False), keys=dict(linear_num_key_heads=2), taps=dict(linear_conv_kernel_dim=3, tie_word_embeddings=True), nope=dict(rope_parameters=dict(rope_type="default", rope_theta=None)))


def mamba_families(family, llm):
    pure = dict(hidden_size=48, num_hidden_layers=4)
    family("mamba", "MambaForCausalLM", "MambaConfig", dict(pure, state_size=8, time_step_rank=4), plain={}, bias=dict(use_bias=True), noconv=dict(use_conv_bias=False), taps=dict(conv_kernel=3, expand=3), untied=dict(tie_word_embeddings=False), eps=dict(layer_norm_epsilon=1e-2))
    family("falcon_mamba", "FalconMambaForCausalLM", "FalconMambaConfig", dict(pure, state_size=8, time_step_rank=4), plain={}, bias=dict(use_bias=True), eps=dict(mixer_rms_eps=1e-2), untied=dict(tie_word_embeddings=False))
    two = dict(pure, num_heads=6, head_dim=16, state_size=12, n_groups=2)
    family("mamba2", "Mamba2ForCausalLM", "Mamba2Config", two, plain={}, one=dict(n_groups=1), bias=dict(use_bias=True), noconv=dict(use_conv_bias=False, conv_kernel=3), limit=dict(time_step_limit=(0.4, 0.9)), tied=dict(tie_word_embeddings=True), six=dict(n_groups=6, expand=1, head_dim=8))
    m2 = dict(num_hidden_layers=5, mamba_n_heads=6, mamba_d_head=16, mamba_d_state=12, mamba_n_groups=2)
    family("bamba", "BambaForCausalLM", "BambaConfig", llm(**m2, attn_layer_indices=[1, 4]), plain={}, bias=dict(mamba_proj_bias=True, attention_bias=True, mlp_bias=True), noconv=dict(mamba_conv_bias=False, mamba_n_groups=1), limit=dict(time_step_limit=(0.3, 1.0)), tied=dict(tie_word_embeddings=True, attn_layer_indices=[0]), none=dict(attn_layer_indices=[]))
    granite = llm(**m2, shared_intermediate_size=40, num_local_experts=4, num_experts_per_tok=2, layer_types=[LINEAR, LINEAR, FULL, LINEAR, FULL], embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.12, logits_scaling=2.0)
    family("granitemoehybrid", "GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig", granite, mamba={}, mamba_dense=dict(num_local_experts=0), mamba_rope=dict(position_embedding_type="rope", tie_word_embeddings=True), mamba_bias=dict(mamba_proj_bias=True, attention_bias=True, mamba_n_groups=1),
           mamba_old=dict(_edit=dict(layer_types=["mamba", "mamba", "attention", "mamba", "attention"], time_step_limit=None)), mamba_only=dict(layer_types=None))
    h1 = llm(**m2, mamba_d_ssm=96, mamba_rms_norm=False)
    family("falcon_h1", "FalconH1ForCausalLM", "FalconH1Config", h1, plain={}, norm=dict(mamba_rms_norm=True), gate=dict(mamba_rms_norm=True, mamba_norm_before_gate=False), one=dict(mamba_rms_norm=True, mamba_n_groups=1), bias=dict(mamba_proj_bias=True, attention_bias=True, mlp_bias=True, projectors_bias=True), tied=dict(tie_word_embeddings=True, mamba_conv_bias=False),
           scales=dict(lm_head_multiplier=0.5, embedding_multiplier=2.0, mlp_multipliers=[0.8, 0.6], key_multiplier=0.7, attention_out_multiplier=0.9, attention_in_multiplier=1.2, ssm_multipliers=[0.9, 0.8, 0.7, 1.1, 1.2], ssm_in_multiplier=1.25, ssm_out_multiplier=0.4))
    nem = llm(num_hidden_layers=None, layers_block_type=[LINEAR, "mlp", FULL, LINEAR, "mlp"], head_dim=16, mamba_num_heads=6, mamba_head_dim=8, ssm_state_size=12, n_groups=2)
    moe = dict(layers_block_type=[LINEAR, "moe", FULL, "mlp", LINEAR, "moe"], n_routed_experts=8, moe_intermediate_size=24, moe_shared_expert_intermediate_size=32)
    family("nemotron_h", "NemotronHForCausalLM", "NemotronHConfig", nem, plain={}, silu=dict(mlp_hidden_act="silu"), bias=dict(use_bias=True, mlp_bias=True), noconv=dict(use_conv_bias=False, n_groups=1), moe=moe, groups=dict(moe, n_group=4, topk_group=2, routed_scaling_factor=2.5), nonorm=dict(moe, norm_topk_prob=False), latent=dict(moe, moe_latent_size=16), clamp=dict(time_step_min=0.5), tied=dict(tie_word_embeddings=True), heads64=dict(mamba_num_heads=2, mamba_head_dim=64), moe64=dict(moe, mamba_num_heads=2, mamba_head_dim=64, layers_block_type=[LINEAR, "moe", FULL, LINEAR, "moe"]),
           published=dict(_edit=dict(layers_block_type=None, hybrid_override_pattern="M-*M-", num_hidden_layers=5, time_step_limit=[0.0, None])))
    family("jamba", "JambaForCausalLM", "JambaConfig", llm(num_hidden_layers=6, attn_layer_period=3, attn_layer_offset=1, num_experts=4, mamba_d_state=8, mamba_dt_rank=4), plain={}, auto=dict(mamba_dt_rank="auto", expert_layer_period=3, expert_layer_offset=2), bias=dict(mamba_proj_bias=True, mamba_conv_bias=False), dense=dict(num_experts=1), tied=dict(tie_word_embeddings=True, mamba_expand=3))


def other_families(family, llm):
    conv = llm(num_hidden_layers=5, layer_types=["conv", "conv", FULL, "conv", FULL])
    family("lfm2", "Lfm2ForCausalLM", "Lfm2Config", conv, mixed={}, bias=dict(conv_bias=True), taps=dict(conv_L_cache=4), width=dict(block_auto_adjust_ff_dim=False), multiple=dict(block_multiple_of=16, block_ffn_dim_multiplier=1.3), untied=dict(tie_word_embeddings=False),
           indices=dict(_edit=dict(layer_types=None, full_attn_idxs=[2, 4])), published=dict(block_auto_adjust_ff_dim=False, _edit=dict(block_ff_dim=80, intermediate_size=None, tie_embedding=True, tie_word_embeddings=None)))
    family("lfm2_moe", "Lfm2MoeForCausalLM", "Lfm2MoeConfig", dict(conv, num_dense_layers=2, moe_intermediate_size=24, num_experts=6, num_experts_per_tok=2), plain={}, nobias=dict(use_expert_bias=False), nonorm=dict(norm_topk_prob=False), scale=dict(routed_scaling_factor=1.5, num_dense_layers=0))
    family("recurrent_gemma", "RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", llm(num_hidden_layers=5, attention_window_size=8), plain={}, wide=dict(lru_width=64), blocks=dict(block_types=["attention", "recurrent"], conv1d_width=2), bias=dict(attention_bias=True, attention_window_size=64), heads=dict(num_attention_heads=3, num_key_value_heads=1), cap=dict(logits_soft_cap=5.0), act=dict(hidden_activation="gelu"))
    zamba = llm(num_hidden_layers=6, num_key_value_heads=4, layers_block_type=[LINEAR, "hybrid", LINEAR, LINEAR, "hybrid", "hybrid"], n_mamba_heads=6, mamba_d_state=12, adapter_rank=8)
    family("zamba2", "Zamba2ForCausalLM", "Zamba2Config", zamba, plain={}, rope=dict(use_mem_rope=True), adapters=dict(use_shared_attention_adapter=True, mamba_ngroups=2), two=dict(num_mem_blocks=2, use_shared_attention_adapter=True, use_mem_rope=True), bias=dict(add_bias_linear=True), untied=dict(tie_word_embeddings=False), gqa=dict(num_key_value_heads=2))
