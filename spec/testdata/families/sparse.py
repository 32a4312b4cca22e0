"""Models with sparse attention for make.py, in the same form as its tables. They need transformers 5.24.

Their ids are longer than the number of rows that a token attends to. Indexers have many heads: with few, many rows have a
score of 0, and the choice among them depends on the length of what is read at once.
"""

MLA = dict(hidden_size=16, intermediate_size=24, num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64, q_lora_rank=8, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, kv_lora_rank=10,
           moe_intermediate_size=8, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=2, topk_group=1, index_topk=7, index_head_dim=6, index_n_heads=14)

MODELS = {
    "sparse_own": ("DeepseekV32ForCausalLM", "DeepseekV32Config", dict(MLA, num_hidden_layers=2, first_k_dense_replace=1)),
    "sparse_shared": ("GlmMoeDsaForCausalLM", "GlmMoeDsaConfig", dict(MLA, num_hidden_layers=4, indexer_types=["full", "full", "shared", "full"], mlp_layer_types=["dense", "sparse", "sparse", "dense"])),
}
