"""Models with sparse attention for make.py, in the same form as its tables.

Their ids are longer than the number of rows that a token attends to. Indexers have many heads: with few, many rows have a
score of 0, and ties.py finds choices among them.
"""

MLA = dict(hidden_size=16, intermediate_size=24, num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64, q_lora_rank=8, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, kv_lora_rank=10,
           moe_intermediate_size=8, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=2, topk_group=1, index_topk=7, index_head_dim=6, index_n_heads=14)

V4 = dict(moe_intermediate_size=8, num_hidden_layers=4, q_lora_rank=8, num_experts_per_tok=2, n_routed_experts=4, index_head_dim=8, index_topk=5, max_position_embeddings=64, hc_sinkhorn_iters=3)

MODELS = {
    "sparse_own": ("DeepseekV32ForCausalLM", "DeepseekV32Config", dict(MLA, num_hidden_layers=2, first_k_dense_replace=1)),
    "deepseek_v4": ("DeepseekV4ForCausalLM", "DeepseekV4Config", dict(V4, hidden_size=16, num_attention_heads=4, head_dim=12, partial_rotary_factor=0.5, o_groups=2, o_lora_rank=6, index_n_heads=14, sliding_window=6, hc_mult=3, mlp_layer_types=["hash_moe", "moe", "hash_moe", "moe"],
                          layer_types=["sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention", "compressed_sparse_attention"], compress_rates=dict(compressed_sparse_attention=2, heavily_compressed_attention=5))),
    "deepseek_v4_yarn": ("DeepseekV4ForCausalLM", "DeepseekV4Config", dict(V4, hidden_size=20, num_attention_heads=3, head_dim=10, partial_rotary_factor=0.4, o_groups=3, o_lora_rank=4, index_n_heads=10, sliding_window=9, hc_mult=2, mlp_layer_types=["hash_moe", "moe", "moe"], num_hidden_layers=3,
                               layer_types=["heavily_compressed_attention", "compressed_sparse_attention", "sliding_attention"], compress_rates=dict(compressed_sparse_attention=4, heavily_compressed_attention=128),  # as in GGUF files
                               rope_parameters=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=16.0, beta_slow=2.0))),
    "sparse_shared": ("GlmMoeDsaForCausalLM", "GlmMoeDsaConfig", dict(MLA, num_hidden_layers=4, index_n_heads=24, indexer_types=["full", "full", "shared", "full"], mlp_layer_types=["dense", "sparse", "sparse", "dense"])),
}
