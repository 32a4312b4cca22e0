"""Models with sparse attention for breadth.py. They need transformers 5.24; with an older one they are left out."""

import transformers as tf

NEW = tuple(int(x) for x in tf.__version__.split(".")[:2]) >= (5, 24)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, mscale=0.7, mscale_all_dim=0.9)
LINEAR = dict(rope_type="linear", factor=4.0)


def add(family, llm):
    """Adds the families with breadth_variants' functions."""
    if not NEW:
        return
    indexer_families(family, llm)


def indexer_families(family, llm):
    mla = dict(num_hidden_layers=4, num_key_value_heads=4, q_lora_rank=20, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10, kv_lora_rank=24, moe_intermediate_size=24, n_routed_experts=8, num_experts_per_tok=3,
               n_shared_experts=1, n_group=4, topk_group=2, index_topk=9, index_head_dim=24, index_n_heads=6, _cached=True)
    common = dict(plain={}, dense=dict(index_topk=2048), few=dict(index_topk=1), most=dict(index_topk=33, index_n_heads=8), narrow=dict(index_head_dim=8, index_n_heads=16), one_group=dict(n_group=1, topk_group=1),
                  nonorm=dict(norm_topk_prob=False, routed_scaling_factor=1.0), bias=dict(attention_bias=True), tied=dict(tie_word_embeddings=True), yarn=dict(rope_parameters=dict(YARN, rope_theta=10000.0)), old_yarn=dict(rope_scaling=YARN),
                  linear=dict(rope_parameters=dict(LINEAR, rope_theta=1000.0)), eps=dict(rms_norm_eps=1e-2), gelu=dict(hidden_act="gelu"), shared=dict(n_shared_experts=2, first_k_dense_replace=1), long=dict(_prompt=150, index_topk=70, max_position_embeddings=256),
                  sparse=dict(first_k_dense_replace=0, mlp_layer_types=["sparse", "dense", "sparse", "sparse"]))
    family("deepseek_v32", "DeepseekV32ForCausalLM", "DeepseekV32Config", llm(**mla), **common,
           published=dict(_edit=dict(mlp_layer_types=None, layer_types=None, first_k_dense_replace=3, rope_parameters=None, rope_theta=10000.0, head_dim=None)))
    glm = llm(**mla)
    glm["num_hidden_layers"] = 6
    family("glm_moe_dsa", "GlmMoeDsaForCausalLM", "GlmMoeDsaConfig", glm, **{**common, "sparse": dict(mlp_layer_types=["sparse", "dense", "sparse", "sparse", "dense", "sparse"])},
           pattern=dict(index_topk_pattern="FSSFFS"), types=dict(indexer_types=["full", "shared", "full", "full", "shared", "shared"]), freq=dict(index_topk_freq=2), offset=dict(index_topk_freq=3, index_skip_topk_offset=3),
           published=dict(index_topk_freq=2, index_skip_topk_offset=3, _edit=dict(indexer_types=None, mlp_layer_types=None, first_k_dense_replace=3, layer_types=None, index_topk_freq=2, index_skip_topk_offset=3)))
