"""Models with sparse attention for breadth.py. Indexers have many heads: with few, many rows have a score of 0, and ties.py
finds choices among them."""

import torch

YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, mscale=0.7, mscale_all_dim=0.9)
LINEAR = dict(rope_type="linear", factor=4.0)
SLIDE, CSA, HCA = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"


def add(family, llm):
    """Adds the families with breadth_variants' functions."""
    indexer_families(family, llm)
    compressed_family(family, llm)


def indexer_families(family, llm):
    mla = dict(num_hidden_layers=4, num_key_value_heads=4, q_lora_rank=20, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10, kv_lora_rank=24, moe_intermediate_size=24, n_routed_experts=8, num_experts_per_tok=3,
               n_shared_experts=1, n_group=4, topk_group=2, index_topk=9, index_head_dim=24, index_n_heads=32)
    common = dict(plain={}, dense=dict(index_topk=2048), few=dict(index_topk=1), most=dict(index_topk=33, index_n_heads=24), narrow=dict(index_head_dim=8, index_n_heads=40), one_group=dict(n_group=1, topk_group=1),
                  nonorm=dict(norm_topk_prob=False, routed_scaling_factor=1.0), bias=dict(attention_bias=True), tied=dict(tie_word_embeddings=True), yarn=dict(rope_parameters=dict(YARN, rope_theta=10000.0)), old_yarn=dict(rope_scaling=YARN),
                  linear=dict(rope_parameters=dict(LINEAR, rope_theta=1000.0)), eps=dict(rms_norm_eps=1e-2), gelu=dict(hidden_act="gelu"), shared=dict(n_shared_experts=2, first_k_dense_replace=1), long=dict(_prompt=150, index_topk=70, max_position_embeddings=256),
                  sparse=dict(first_k_dense_replace=0, mlp_layer_types=["sparse", "dense", "sparse", "sparse"]))
    family("deepseek_v32", "DeepseekV32ForCausalLM", "DeepseekV32Config", llm(**mla), **common,
           published=dict(_edit=dict(mlp_layer_types=None, layer_types=None, first_k_dense_replace=3, rope_parameters=None, rope_theta=10000.0, head_dim=None)))
    lite = {k: v for k, v in mla.items() if not k.startswith("index_")}
    family("glm4_moe_lite", "Glm4MoeLiteForCausalLM", "Glm4MoeLiteConfig", llm(**lite), plain={}, noq=dict(q_lora_rank=None), halves=dict(rope_interleave=False), nonorm=dict(norm_topk_prob=False, routed_scaling_factor=1.0), one_group=dict(n_group=1, topk_group=1),
           bias=dict(attention_bias=True), tied=dict(tie_word_embeddings=True), sparse=dict(mlp_layer_types=["sparse", "dense", "sparse", "sparse"]), eps=dict(rms_norm_eps=1e-2), yarn=dict(rope_parameters=dict(YARN, rope_theta=10000.0)), published=dict(_edit=dict(mlp_layer_types=None, first_k_dense_replace=1)))
    glm = llm(**mla)
    glm["num_hidden_layers"] = 6
    family("glm_moe_dsa", "GlmMoeDsaForCausalLM", "GlmMoeDsaConfig", glm, **{**common, "sparse": dict(mlp_layer_types=["sparse", "dense", "sparse", "sparse", "dense", "sparse"])},
           pattern=dict(index_topk_pattern="FSSFFS"), types=dict(indexer_types=["full", "shared", "full", "full", "shared", "shared"]), freq=dict(index_topk_freq=2), offset=dict(index_topk_freq=3, index_skip_topk_offset=3),
           published=dict(index_topk_freq=2, index_skip_topk_offset=3, _edit=dict(indexer_types=None, mlp_layer_types=None, first_k_dense_replace=3, layer_types=None, index_topk_freq=2, index_skip_topk_offset=3)))


def ids_of_experts(model):
    """Experts by token id, and other numbers that are constant in a new model."""
    for i, layer in enumerate(model.model.layers):
        gate = layer.mlp.gate
        if hasattr(gate, "tid2eid"):
            rows, k = gate.tid2eid.shape
            gate.tid2eid.copy_(torch.stack([torch.randperm(model.config.n_routed_experts, generator=torch.Generator().manual_seed(1000 * i + r))[:k] for r in range(rows)]))


def compressed_family(family, llm):
    base = dict(llm(), num_key_value_heads=1, intermediate_size=None, moe_intermediate_size=24, num_hidden_layers=5, head_dim=20, q_lora_rank=20, num_experts_per_tok=3, n_routed_experts=8, o_groups=2, o_lora_rank=12, index_n_heads=16, index_head_dim=16,
                index_topk=4, sliding_window=7, partial_rotary_factor=0.4, compress_rates={CSA: 3, HCA: 5}, layer_types=[SLIDE, HCA, CSA, CSA, HCA], mlp_layer_types=["hash_moe", "hash_moe", "moe", "moe", "hash_moe"], _before_save=ids_of_experts)
    published = dict(_prompt=150, compress_rates={CSA: 4, HCA: 128}, layer_types=[SLIDE, HCA, CSA, CSA], mlp_layer_types=["hash_moe", "hash_moe", "moe", "moe"], max_position_embeddings=256,
                     num_hidden_layers=4, hidden_size=32, moe_intermediate_size=8, n_routed_experts=4, num_experts_per_tok=2, q_lora_rank=8, o_lora_rank=6, index_head_dim=8)
    family("deepseek_v4", "DeepseekV4ForCausalLM", "DeepseekV4Config", base,
           plain={}, rates=dict(compress_rates={CSA: 4, HCA: 16}), wide=dict(sliding_window=64, index_topk=64), one=dict(sliding_window=1, index_topk=1, _cached=False), groups=dict(o_groups=4), group=dict(o_groups=1), streams=dict(hc_mult=2, hc_sinkhorn_iters=1, hc_eps=1e-3),
           softmax=dict(scoring_func="sigmoid", norm_topk_prob=False, routed_scaling_factor=1.0), limit=dict(swiglu_limit=0.3), gelu=dict(hidden_act="gelu"), tied=dict(tie_word_embeddings=True), moe=dict(mlp_layer_types=["moe"] * 5), hashed=dict(mlp_layer_types=["hash_moe"] * 5),
           slide=dict(layer_types=[SLIDE] * 5), sparse=dict(layer_types=[CSA] * 5), heavy=dict(layer_types=[HCA] * 5), eps=dict(rms_norm_eps=1e-2), theta=dict(rope_theta=500.0, compress_rope_theta=2000.0),
           yarn=dict(rope_parameters=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=16.0, beta_slow=2.0)), default=dict(layer_types=None, mlp_layer_types=None, partial_rotary_factor=None, head_dim=32), rope=dict(partial_rotary_factor=1.0, index_head_dim=20),
           long=dict(_prompt=150, index_topk=20, max_position_embeddings=256),
           published_rates=published, published_yarn=dict(published, rope_parameters=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=16.0, beta_slow=2.0)))
