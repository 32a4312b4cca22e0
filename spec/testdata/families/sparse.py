"""Models with sparse attention for make.py, in the same form as its tables. They need transformers 5.24.

Their ids are longer than the number of rows that a token attends to. Indexers have many heads: with few, many rows have a
score of 0, and the choice among them depends on the length of what is read at once.
"""

MLA = dict(hidden_size=16, intermediate_size=24, num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64, q_lora_rank=8, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, kv_lora_rank=10,
           moe_intermediate_size=8, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=2, topk_group=1, index_topk=7, index_head_dim=6, index_n_heads=14)

MODELS = {
    "sparse_own": ("DeepseekV32ForCausalLM", "DeepseekV32Config", dict(MLA, num_hidden_layers=2, first_k_dense_replace=1)),
    "deepseek_v4": ("DeepseekV4ForCausalLM", "DeepseekV4Config", dict(hidden_size=16, moe_intermediate_size=8, num_hidden_layers=4, num_attention_heads=4, head_dim=12, partial_rotary_factor=0.5, q_lora_rank=8, num_experts_per_tok=2, n_routed_experts=4, o_groups=2, o_lora_rank=6,
                          index_n_heads=14, index_head_dim=8, index_topk=5, sliding_window=6, max_position_embeddings=64, hc_mult=3, hc_sinkhorn_iters=3, mlp_layer_types=["hash_moe", "moe", "hash_moe", "moe"],
                          layer_types=["sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention", "compressed_sparse_attention"], compress_rates=dict(compressed_sparse_attention=2, heavily_compressed_attention=5))),
    "sparse_shared": ("GlmMoeDsaForCausalLM", "GlmMoeDsaConfig", dict(MLA, num_hidden_layers=4, indexer_types=["full", "full", "shared", "full"], mlp_layer_types=["dense", "sparse", "sparse", "dense"])),
}
