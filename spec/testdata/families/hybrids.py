"""Hybrid and recurrent models for make.py, in the same form as its tables.

Their ids are longer than those of make.py, and than one chunk of the recurrences in transformers.
"""

FULL, LINEAR, SLIDE = "full_attention", "linear_attention", "sliding_attention"
LENGTH = 41


def llm(**kw):
    d = dict(hidden_size=24, intermediate_size=32, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=128)
    return {k: v for k, v in {**d, **kw}.items() if v is not None}


def delta(**kw):
    d = dict(head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6, linear_value_head_dim=5,
             layer_types=[LINEAR, LINEAR, LINEAR, FULL], rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5))
    return llm(**{**d, **kw})


EXPERTS = dict(moe_intermediate_size=12, shared_expert_intermediate_size=16, num_experts=4, num_experts_per_tok=2)
MAMBA2 = dict(mamba_n_heads=6, mamba_d_head=8, mamba_d_state=10, mamba_n_groups=2)


def mamba1(**kw):
    return dict(hidden_size=20, state_size=6, num_hidden_layers=3, time_step_rank=3, **kw)


def latent(**kw):
    d = dict(num_attention_heads=2, num_key_value_heads=2, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, kv_lora_rank=10, moe_intermediate_size=12, num_experts=4, n_routed_experts=4,
             num_experts_per_tok=2, num_experts_per_token=2, num_shared_experts=1, n_shared_experts=1)
    return llm(**{**d, **kw})


KIMI = dict(linear_num_heads=2, linear_head_dim=6, linear_conv_kernel_dim=4, layer_types=[LINEAR, LINEAR, FULL, LINEAR], q_lora_rank=None)
MINIMAX = dict(num_local_experts=4, num_experts_per_tok=2, head_dim=8, block_size=16, num_hidden_layers=4)
ALPHAS = dict(full_attn_alpha_factor=1.3, full_attn_beta_factor=0.8, linear_attn_alpha_factor=1.2, linear_attn_beta_factor=0.7, mlp_alpha_factor=1.1, mlp_beta_factor=0.9)
MULTIPLIERS = dict(lm_head_multiplier=0.5, embedding_multiplier=2.0, mlp_multipliers=[0.8, 0.6], key_multiplier=0.7, attention_out_multiplier=0.9, attention_in_multiplier=1.2,
                   ssm_multipliers=[0.9, 0.8, 0.7, 1.1, 1.2], ssm_in_multiplier=1.25, ssm_out_multiplier=0.4)
GRANITE = dict(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.12, logits_scaling=2.0, shared_intermediate_size=20)

MODELS = {
    "qwen3_5": ("Qwen3_5ForCausalLM", "Qwen3_5TextConfig", delta()),
    "qwen3_5_moe": ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextConfig", delta(intermediate_size=None, tie_word_embeddings=True, **EXPERTS)),
    "qwen3_next": ("Qwen3NextForCausalLM", "Qwen3NextConfig", delta(norm_topk_prob=True, **EXPERTS)),
    "qwen3_next_dense": ("Qwen3NextForCausalLM", "Qwen3NextConfig", delta(mlp_only_layers=[1, 3], attention_bias=True, linear_conv_kernel_dim=3, linear_num_key_heads=1, **EXPERTS)),
    "olmo_hybrid": ("OlmoHybridForCausalLM", "OlmoHybridConfig", delta(head_dim=None, rope_parameters=None, num_key_value_heads=2, linear_num_value_heads=2)),
    "olmo_hybrid_rope": ("OlmoHybridForCausalLM", "OlmoHybridConfig", delta(head_dim=None, rope_parameters=dict(rope_type="default", rope_theta=10000.0), linear_allow_neg_eigval=False, linear_num_value_heads=2)),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config", dict(hidden_size=24, num_hidden_layers=3, num_heads=6, head_dim=8, state_size=10, n_groups=2, time_step_limit=(0.3, 1.0))),
    "mamba2_biased": ("Mamba2ForCausalLM", "Mamba2Config", dict(hidden_size=24, num_hidden_layers=2, num_heads=6, head_dim=8, state_size=10, n_groups=1, use_bias=True, use_conv_bias=False, tie_word_embeddings=True)),
    "bamba": ("BambaForCausalLM", "BambaConfig", llm(attn_layer_indices=[1, 3], head_dim=None, **MAMBA2)),
    "bamba_biased": ("BambaForCausalLM", "BambaConfig", llm(attn_layer_indices=[2], mamba_proj_bias=True, attention_bias=True, mlp_bias=True, **MAMBA2)),
    "granitemoehybrid_mamba": ("GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig", llm(num_local_experts=4, num_experts_per_tok=2, layer_types=[LINEAR, FULL, LINEAR, LINEAR], **MAMBA2, **GRANITE)),
    "granitemoehybrid_dense": ("GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig", llm(num_local_experts=0, position_embedding_type="rope", layer_types=[LINEAR, LINEAR, FULL, FULL], mamba_proj_bias=True, tie_word_embeddings=True, **MAMBA2, **GRANITE)),
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", llm(layer_types=["conv", "conv", FULL, "conv"], block_multiple_of=8, intermediate_size=45, block_ffn_dim_multiplier=1.1)),
    "lfm2_biased": ("Lfm2ForCausalLM", "Lfm2Config", llm(layer_types=["conv", FULL, "conv", FULL], block_auto_adjust_ff_dim=False, conv_bias=True, conv_L_cache=4, tie_word_embeddings=False)),
    "lfm2_moe": ("Lfm2MoeForCausalLM", "Lfm2MoeConfig", llm(layer_types=["conv", FULL, "conv", "conv"], num_dense_layers=1, moe_intermediate_size=12, num_experts=4, num_experts_per_tok=2, routed_scaling_factor=1.5)),
    "falcon_h1": ("FalconH1ForCausalLM", "FalconH1Config", llm(num_hidden_layers=3, mamba_d_ssm=48, mamba_rms_norm=False, **MAMBA2, **MULTIPLIERS)),
    "falcon_h1_norm": ("FalconH1ForCausalLM", "FalconH1Config", llm(num_hidden_layers=2, mamba_d_ssm=48, mamba_rms_norm=True, mamba_norm_before_gate=True, mamba_proj_bias=True, attention_bias=True, mlp_bias=True, projectors_bias=True, **MAMBA2)),
    "falcon_h1_gate": ("FalconH1ForCausalLM", "FalconH1Config", llm(num_hidden_layers=2, mamba_d_ssm=48, mamba_rms_norm=True, mamba_norm_before_gate=False, mamba_conv_bias=False, tie_word_embeddings=True, **MAMBA2)),
    "nemotron_h": ("NemotronHForCausalLM", "NemotronHConfig", llm(num_hidden_layers=None, layers_block_type=[LINEAR, "mlp", LINEAR, FULL, "mlp"], head_dim=8, mamba_num_heads=4, mamba_head_dim=6, ssm_state_size=10, n_groups=2)),
    "nemotron_h_moe": ("NemotronHForCausalLM", "NemotronHConfig", llm(num_hidden_layers=None, layers_block_type=[LINEAR, "moe", FULL, "moe", "mlp"], head_dim=8, mamba_num_heads=4, mamba_head_dim=6, ssm_state_size=10, n_groups=2, use_conv_bias=False,
                   use_bias=True, time_step_min=0.4, n_routed_experts=4, moe_intermediate_size=12, moe_shared_expert_intermediate_size=16, num_experts_per_tok=2, routed_scaling_factor=1.5, n_group=2, topk_group=1)),
    "nemotron_h_latent": ("NemotronHForCausalLM", "NemotronHConfig", llm(num_hidden_layers=None, layers_block_type=[LINEAR, "moe", FULL, "moe"], head_dim=8, mamba_num_heads=4, mamba_head_dim=6, ssm_state_size=10, n_groups=2,
                          n_routed_experts=4, moe_latent_size=12, moe_intermediate_size=12, moe_shared_expert_intermediate_size=16, num_experts_per_tok=2)),
    "mamba": ("MambaForCausalLM", "MambaConfig", mamba1()),
    "mamba_biased": ("MambaForCausalLM", "MambaConfig", mamba1(use_bias=True, use_conv_bias=False, tie_word_embeddings=False)),
    "falcon_mamba": ("FalconMambaForCausalLM", "FalconMambaConfig", mamba1()),
    "jamba": ("JambaForCausalLM", "JambaConfig", llm(attn_layer_period=3, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, num_experts=4, mamba_d_state=6, mamba_dt_rank=3)),
    "jamba_biased": ("JambaForCausalLM", "JambaConfig", llm(attn_layer_period=2, attn_layer_offset=0, expert_layer_period=3, expert_layer_offset=0, num_experts=4, mamba_d_state=6, mamba_dt_rank="auto", mamba_proj_bias=True, mamba_conv_bias=False, tie_word_embeddings=True)),
    "kimi_linear": ("KimiLinearForCausalLM", "KimiLinearConfig", latent(**KIMI)),
    "kimi_linear_groups": ("KimiLinearForCausalLM", "KimiLinearConfig", latent(**{**KIMI, "q_lora_rank": 8}, num_expert_group=2, topk_group=1, mlp_layer_types=["sparse", "dense", "sparse", "sparse"])),
    "bailing_hybrid": ("BailingHybridForCausalLM", "BailingHybridConfig", latent(head_dim=6, layer_group_size=2, first_k_dense_replace=1, n_group=2, num_expert_group=2, topk_group=1)),
    "bailing_hybrid_open": ("BailingHybridForCausalLM", "BailingHybridConfig", latent(head_dim=6, layer_group_size=3, first_k_dense_replace=0, num_expert_group=1, topk_group=1, kda_safe_gate=False, q_lora_rank=8)),
    "minimax": ("MiniMaxForCausalLM", "MiniMaxConfig", llm(layer_types=[LINEAR, LINEAR, FULL, LINEAR], **MINIMAX, **ALPHAS)),
    "recurrent_gemma": ("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", llm(hidden_size=32, attention_window_size=9, lru_width=32)),
    "recurrent_gemma_wide": ("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", llm(hidden_size=32, attention_window_size=64, num_hidden_layers=3, block_types=["attention", "recurrent"], lru_width=48, conv1d_width=3, attention_bias=True)),
    "zamba2": ("Zamba2ForCausalLM", "Zamba2Config", llm(num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=4, layers_block_type=[LINEAR, "hybrid", LINEAR, "hybrid", "hybrid"], num_mem_blocks=2, n_mamba_heads=6, mamba_d_state=10, mamba_ngroups=2,
               use_mem_rope=True, adapter_rank=5)),
    "zamba2_adapters": ("Zamba2ForCausalLM", "Zamba2Config", llm(num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, layers_block_type=["hybrid", LINEAR, "hybrid", LINEAR], num_mem_blocks=1, n_mamba_heads=6, mamba_d_state=10, mamba_ngroups=1,
               use_shared_attention_adapter=True, adapter_rank=5, add_bias_linear=True)),
}
