"""The families and variants of breadth.py: transformers' classes and the parameters that an engine could get wrong."""

from dataclasses import dataclass, field
from typing import Callable

import encoder_variants
import hybrid_variants
import mxfp4
import shared_state_variants
import sparse_variants
import text_part_variants

FULL, SLIDE = "full_attention", "sliding_attention"

# Where transformers' two paths differ.
TWICE = dict(_note="eager adds ALiBi twice")


@dataclass(frozen=True)
class Variant:
    family: str
    name: str
    model: str  # transformers' class
    config: str | Callable  # transformers' class, or a function of the parameters
    params: dict
    note: str = ""
    edit: dict = field(default_factory=dict)  # keys of config.json to change when all is recorded; None takes one out
    prompt: int = 0  # length of the prompt where it is not the common one; such a folder has no batch
    steps: int = 24
    cached: bool = True  # decode with transformers' cache: angles of dynamic rope and longrope depend on the length of what is read at once
    before_save: Callable | None = None
    reference: Callable | None = None  # makes the model that is recorded of the one that is saved
    after: Callable | None = None  # edits the folder when all is recorded
    encoder: bool = False  # record hidden states and heads in place of a continuation

    @property
    def key(self) -> str:
        return f"{self.family}-{self.name}"


VARIANTS: list[Variant] = []


def family(name, model, config, base, /, **variants):
    """Each variant is base with its own parameters over it; None takes one out. Keys with _ in front are Variant's."""
    for v, params in variants.items():
        merged = {**base, **params}
        own = {k[1:]: x for k, x in merged.items() if k.startswith("_")}
        VARIANTS.append(Variant(name, v, model, config, {k: x for k, x in merged.items() if x is not None and not k.startswith("_")}, **own))


def llm(**kw):
    d = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
    return {**d, **kw}


LINEAR = dict(rope_type="linear", factor=4.0)
DYNAMIC = dict(rope_type="dynamic", factor=2.0)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)
YARN_FULL = dict(YARN, beta_fast=16.0, beta_slow=2.0, attention_factor=0.8)
YARN_MSCALE = dict(YARN, mscale=0.7, mscale_all_dim=0.9)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)


def longrope(n, **kw):
    return dict(type="longrope", short_factor=[1.0 + 0.1 * i for i in range(n)], long_factor=[2.0 + i for i in range(n)], **kw)


SCALINGS = dict(
    linear=dict(rope_scaling=LINEAR), dynamic=dict(rope_scaling=DYNAMIC, max_position_embeddings=32), yarn=dict(rope_scaling=YARN),
    yarn2=dict(rope_scaling=YARN_FULL), yarn3=dict(rope_scaling=YARN_MSCALE), llama3=dict(rope_scaling=LLAMA3, rope_theta=500000.0),
    longrope=dict(rope_scaling=longrope(6, factor=4.0), original_max_position_embeddings=32),
    new_rope=dict(rope_theta=5e4, rope_scaling=LLAMA3, _edit=dict(rope_theta=None, rope_scaling=None, rope_parameters=dict(LLAMA3, rope_theta=5e4))),
)

family("llama", "LlamaForCausalLM", "LlamaConfig", llm(),
       mha=dict(num_key_value_heads=4), mqa=dict(num_key_value_heads=1, tie_word_embeddings=True), biases=dict(attention_bias=True, mlp_bias=True),
       head_dim=dict(head_dim=20, num_key_value_heads=1), gelu=dict(hidden_act="gelu"), gelu_tanh=dict(hidden_act="gelu_pytorch_tanh"), relu=dict(hidden_act="relu"), relu2=dict(hidden_act="relu2"),
       quick_gelu=dict(hidden_act="quick_gelu"), sigmoid=dict(hidden_act="sigmoid"), swish=dict(hidden_act="swish"), tanh=dict(hidden_act="tanh"), fast=dict(hidden_act="gelu_fast"), eps=dict(rms_norm_eps=1e-2), theta=dict(rope_theta=1e6),
       nested=dict(_edit=dict(pretraining_tp=1, attention_dropout=0.0, sliding_window=None, unknown_key=None)), long=dict(_prompt=300, max_position_embeddings=64, _steps=4), **SCALINGS)
family("mistral", "MistralForCausalLM", "MistralConfig", llm(num_hidden_layers=3, head_dim=12),
       window=dict(sliding_window=16), small=dict(sliding_window=5, head_dim=16), none=dict(sliding_window=None, tie_word_embeddings=True), yarn=dict(rope_scaling=YARN, sliding_window=None), llama3=dict(rope_scaling=LLAMA3), theta=dict(rope_theta=1e6, num_key_value_heads=1, hidden_act="gelu"))
family("ministral", "MinistralForCausalLM", "MinistralConfig", llm(num_hidden_layers=4, head_dim=12),
       types=dict(sliding_window=8, layer_types=[SLIDE, FULL, FULL, SLIDE]), window=dict(sliding_window=8, head_dim=16), none=dict(sliding_window=None))
family("mixtral", "MixtralForCausalLM", "MixtralConfig", llm(num_local_experts=6, num_experts_per_tok=2),
       one=dict(num_experts_per_tok=1, num_local_experts=4), three=dict(num_experts_per_tok=3), window=dict(sliding_window=8, tie_word_embeddings=True), head_dim=dict(head_dim=20), gelu=dict(hidden_act="gelu"))
family("qwen2", "Qwen2ForCausalLM", "Qwen2Config", llm(num_hidden_layers=4),
       tied=dict(tie_word_embeddings=True), mha=dict(num_key_value_heads=4), window=dict(use_sliding_window=True, sliding_window=8, max_window_layers=2), types=dict(use_sliding_window=True, sliding_window=8, layer_types=[FULL, SLIDE, FULL, SLIDE]),
       old=dict(use_sliding_window=True, sliding_window=8, max_window_layers=2, _edit=dict(layer_types=None)), unused=dict(use_sliding_window=False, sliding_window=8), yarn=dict(rope_scaling=YARN), dynamic=dict(rope_scaling=DYNAMIC, max_position_embeddings=32), vocab=dict(vocab_size=101))
family("qwen2_moe", "Qwen2MoeForCausalLM", "Qwen2MoeConfig", llm(num_hidden_layers=4, moe_intermediate_size=24, shared_expert_intermediate_size=40, num_experts=6, num_experts_per_tok=3),
       plain={}, norm=dict(norm_topk_prob=True), step=dict(decoder_sparse_step=2), dense=dict(mlp_only_layers=[0, 2]), both=dict(decoder_sparse_step=2, mlp_only_layers=[3], tie_word_embeddings=True), bias=dict(qkv_bias=False))
family("qwen3", "Qwen3ForCausalLM", "Qwen3Config", llm(num_hidden_layers=3, head_dim=16),
       plain={}, tied=dict(tie_word_embeddings=True), bias=dict(attention_bias=True), window=dict(use_sliding_window=True, sliding_window=8, max_window_layers=1), yarn=dict(rope_scaling=YARN), mha=dict(num_key_value_heads=4, head_dim=20))
family("qwen3_moe", "Qwen3MoeForCausalLM", "Qwen3MoeConfig", llm(num_hidden_layers=4, head_dim=16, moe_intermediate_size=24, num_experts=6, num_experts_per_tok=2),
       plain={}, norm=dict(norm_topk_prob=True), step=dict(decoder_sparse_step=2, norm_topk_prob=True), dense=dict(mlp_only_layers=[1]), bias=dict(attention_bias=True, tie_word_embeddings=True), window=dict(use_sliding_window=True, sliding_window=8, max_window_layers=2), window2=dict(use_sliding_window=True, sliding_window=8, max_window_layers=0))
family("gemma", "GemmaForCausalLM", "GemmaConfig", llm(head_dim=16), mqa=dict(num_key_value_heads=1), gqa={}, untied=dict(tie_word_embeddings=False), gelu=dict(hidden_act="gelu"), activation=dict(hidden_act="gelu_pytorch_tanh", hidden_activation="gelu"), bias=dict(attention_bias=True))
family("gemma2", "Gemma2ForCausalLM", "Gemma2Config", llm(num_hidden_layers=4, head_dim=16, sliding_window=8, query_pre_attn_scalar=24),
       caps=dict(attn_logit_softcapping=2.0, final_logit_softcapping=5.0), defaults={}, types=dict(layer_types=[FULL, SLIDE, SLIDE, FULL]), old=dict(_edit=dict(layer_types=None)), untied=dict(tie_word_embeddings=False), act=dict(hidden_activation="gelu"))
family("gemma3_text", "Gemma3ForCausalLM", "Gemma3TextConfig", llm(num_hidden_layers=6, head_dim=16, sliding_window=8, query_pre_attn_scalar=20),
       pattern=dict(sliding_window_pattern=3), types=dict(layer_types=[SLIDE, FULL, SLIDE, FULL, SLIDE, FULL]), scaled=dict(rope_scaling=dict(rope_type="linear", factor=8.0)), caps=dict(attn_logit_softcapping=3.0, final_logit_softcapping=4.0), untied=dict(tie_word_embeddings=False), old=dict(_edit=dict(layer_types=None)), yarn=dict(rope_scaling=YARN))
family("phi", "PhiForCausalLM", "PhiConfig", llm(), gqa={}, mha=dict(num_key_value_heads=4, partial_rotary_factor=0.5), full=dict(partial_rotary_factor=1.0), qk_norm=dict(qk_layernorm=True), relu=dict(hidden_act="relu"), tied=dict(tie_word_embeddings=True), linear=dict(rope_scaling=LINEAR), dynamic=dict(rope_scaling=DYNAMIC, max_position_embeddings=32))
family("phi3", "Phi3ForCausalLM", "Phi3Config", llm(), mha=dict(num_key_value_heads=4), gqa=dict(tie_word_embeddings=True), window=dict(sliding_window=8),
       long=dict(rope_scaling=longrope(6), original_max_position_embeddings=8, max_position_embeddings=128),
       short=dict(rope_scaling=longrope(6), original_max_position_embeddings=96, max_position_embeddings=512), partial=dict(partial_rotary_factor=0.5, rope_scaling=longrope(3), original_max_position_embeddings=8),
       su=dict(rope_scaling=longrope(6), original_max_position_embeddings=8, _edit=dict(rope_parameters=None, rope_theta=10000.0, rope_scaling=dict(longrope(6), type="su"))), cross=dict(rope_scaling=longrope(6), original_max_position_embeddings=44), gelu=dict(hidden_act="gelu"))
# transformers 5.24 takes the short factors of Phi-3.5-MoE at all lengths, so they are equal here.
family("phimoe", "PhimoeForCausalLM", "PhimoeConfig", llm(num_local_experts=4, num_experts_per_tok=2, head_dim=12),
       plain={}, bias=dict(attention_bias=True, lm_head_bias=True), long=dict(rope_scaling=dict(longrope(6), long_factor=[1.0 + 0.1 * i for i in range(6)], short_mscale=1.1, long_mscale=1.2, original_max_position_embeddings=8), original_max_position_embeddings=8))
family("granite", "GraniteForCausalLM", "GraniteConfig", llm(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.12, logits_scaling=2.0),
       plain={}, tied=dict(tie_word_embeddings=True), bias=dict(attention_bias=True, mlp_bias=True), ones=dict(embedding_multiplier=1.0, residual_multiplier=1.0, attention_multiplier=1.0, logits_scaling=1.0))
family("granitemoe", "GraniteMoeForCausalLM", "GraniteMoeConfig", llm(num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.12, logits_scaling=2.0), plain={}, tied=dict(tie_word_embeddings=True, num_experts_per_tok=1))
family("granitemoeshared", "GraniteMoeSharedForCausalLM", "GraniteMoeSharedConfig", llm(num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.12, logits_scaling=2.0), shared=dict(shared_intermediate_size=40), none=dict(shared_intermediate_size=0), tied=dict(shared_intermediate_size=40, tie_word_embeddings=True))
family("granitemoehybrid", "GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig", llm(layer_types=["attention", "attention"], mamba_n_heads=4, mamba_d_head=24, shared_intermediate_size=40, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.12, logits_scaling=2.0), dense=dict(num_local_experts=0, num_experts_per_tok=0, position_embedding_type="rope"), nope=dict(num_local_experts=4, num_experts_per_tok=2), experts=dict(num_local_experts=4, num_experts_per_tok=2, position_embedding_type="rope"))
family("cohere", "CohereForCausalLM", "CohereConfig", llm(logit_scale=0.25), plain={}, mha=dict(num_key_value_heads=4), qk_norm=dict(use_qk_norm=True), untied=dict(tie_word_embeddings=False), bias=dict(attention_bias=True))
family("cohere2", "Cohere2ForCausalLM", "Cohere2Config", llm(num_hidden_layers=4, logit_scale=0.25, sliding_window=8), plain={}, types=dict(layer_types=[FULL, SLIDE, FULL, SLIDE]), old=dict(_edit=dict(layer_types=None)), bias=dict(attention_bias=True), untied=dict(tie_word_embeddings=False))
family("olmo", "OlmoForCausalLM", "OlmoConfig", llm(), plain={}, clip=dict(clip_qkv=0.5), tied=dict(tie_word_embeddings=True), bias=dict(attention_bias=True), linear=dict(rope_scaling=dict(type="linear", factor=4.0)))
family("olmo2", "Olmo2ForCausalLM", "Olmo2Config", llm(), gqa={}, mha=dict(num_key_value_heads=4), tied=dict(tie_word_embeddings=True), bias=dict(attention_bias=True), linear=dict(rope_scaling=dict(type="linear", factor=4.0)), mqa=dict(num_key_value_heads=1))
family("olmo3", "Olmo3ForCausalLM", "Olmo3Config", llm(num_hidden_layers=4, sliding_window=8), plain={}, types=dict(layer_types=[SLIDE, FULL, SLIDE, FULL]), yarn=dict(rope_scaling=YARN), bias=dict(attention_bias=True))
family("olmoe", "OlmoeForCausalLM", "OlmoeConfig", llm(num_experts=6, num_experts_per_tok=2), plain={}, norm=dict(norm_topk_prob=True), clip=dict(clip_qkv=0.5), mha=dict(num_key_value_heads=4), bias=dict(attention_bias=True))
family("flex_olmo", "FlexOlmoForCausalLM", "FlexOlmoConfig", llm(num_experts=6, num_experts_per_tok=2), plain={}, norm=dict(norm_topk_prob=True))
family("stablelm", "StableLmForCausalLM", "StableLmConfig", llm(hidden_size=64), plain={}, bias=dict(use_qkv_bias=True, partial_rotary_factor=0.5), parallel=dict(use_parallel_residual=True), qk_norm=dict(qk_layernorm=True), both=dict(qk_layernorm=True, use_parallel_residual=True, partial_rotary_factor=1.0), tied=dict(tie_word_embeddings=True), dynamic=dict(rope_scaling=DYNAMIC, max_position_embeddings=32), mha=dict(num_key_value_heads=4))
family("starcoder2", "Starcoder2ForCausalLM", "Starcoder2Config", llm(), window=dict(sliding_window=8), none=dict(sliding_window=None), nobias=dict(use_bias=False), untied=dict(tie_word_embeddings=False), linear=dict(rope_scaling=LINEAR))
gpt2 = dict(n_embd=48, n_layer=2, n_head=4, n_positions=128)
family("gpt2", "GPT2LMHeadModel", "GPT2Config", gpt2, plain={}, inner=dict(n_inner=80), inverse=dict(scale_attn_by_inverse_layer_idx=True), unscaled=dict(scale_attn_weights=False), untied=dict(tie_word_embeddings=False), relu=dict(activation_function="relu"), reorder=dict(reorder_and_upcast_attn=True), silu=dict(activation_function="silu"), gelu=dict(activation_function="gelu"))
family("gpt_bigcode", "GPTBigCodeForCausalLM", "GPTBigCodeConfig", gpt2, mqa={}, mha=dict(multi_query=False), inner=dict(n_inner=80), unscaled=dict(scale_attn_weights=False), gelu=dict(activation_function="gelu"))
family("gpt_neo", "GPTNeoForCausalLM", "GPTNeoConfig", dict(hidden_size=48, num_layers=4, num_heads=4, max_position_embeddings=128, window_size=8), local=dict(attention_types=[[["global", "local"], 2]]), globals=dict(attention_types=[[["global"], 4]]), inner=dict(attention_types=[[["local", "global"], 2]], intermediate_size=80), mixed=dict(attention_types=[[["global", "local", "local"], 1], [["global"], 1]]))
family("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", llm(num_key_value_heads=None, hidden_size=64), plain={}, sequential=dict(use_parallel_residual=False), full=dict(rotary_pct=1.0), nobias=dict(attention_bias=False), gelu=dict(hidden_act="gelu_fast"), linear=dict(rope_scaling=LINEAR), dynamic=dict(rope_scaling=DYNAMIC, max_position_embeddings=32), tied=dict(tie_word_embeddings=True), base=dict(rotary_emb_base=5000))
family("gpt_neox_japanese", "GPTNeoXJapaneseForCausalLM", "GPTNeoXJapaneseConfig", dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_multiple_size=2, max_position_embeddings=128), plain={}, partial=dict(rotary_pct=0.5))
family("gptj", "GPTJForCausalLM", "GPTJConfig", gpt2, plain=dict(rotary_dim=8), full=dict(rotary_dim=12), inner=dict(n_inner=80, rotary_dim=4), tied=dict(tie_word_embeddings=True, rotary_dim=8))
family("codegen", "CodeGenForCausalLM", "CodeGenConfig", dict(n_embd=64, n_layer=2, n_head=4, n_positions=128, n_ctx=128), plain=dict(rotary_dim=8), inner=dict(n_inner=80, rotary_dim=16), heads=dict(n_head=8, rotary_dim=4))
falcon = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128)
family("falcon", "FalconForCausalLM", "FalconConfig", falcon, b7=dict(multi_query=True, parallel_attn=True, bias=False), b40=dict(new_decoder_architecture=True, num_kv_heads=2, bias=False), b11=dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1), rw=dict(multi_query=False, parallel_attn=False, bias=True, alibi=True, **TWICE),
       rope_seq=dict(multi_query=False, parallel_attn=False), alibi_mqa=dict(multi_query=True, parallel_attn=True, alibi=True, num_attention_heads=6, **TWICE), mqa_seq=dict(multi_query=True, parallel_attn=False), alibi_new=dict(new_decoder_architecture=True, num_kv_heads=2, alibi=True, bias=True, **TWICE), untied=dict(tie_word_embeddings=False, ffn_hidden_size=80), dynamic=dict(rope_scaling=DYNAMIC, max_position_embeddings=32), mha=dict(multi_query=False, parallel_attn=True), post=dict(multi_query=False, parallel_attn=False, apply_residual_connection_post_layernorm=True), relu=dict(activation="relu"))
family("bloom", "BloomForCausalLM", "BloomConfig", dict(hidden_size=48, n_layer=2, n_head=4), plain={}, heads=dict(n_head=6), post=dict(apply_residual_connection_post_layernorm=True), untied=dict(tie_word_embeddings=False))
opt = dict(hidden_size=48, ffn_dim=80, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, word_embed_proj_dim=48)
family("opt", "OPTForCausalLM", "OPTConfig", opt, plain={}, m350=dict(do_layer_norm_before=False, word_embed_proj_dim=24), post=dict(do_layer_norm_before=False), proj=dict(word_embed_proj_dim=32), nobias=dict(enable_bias=False), noaffine=dict(layer_norm_elementwise_affine=False), untied=dict(tie_word_embeddings=False), gelu=dict(activation_function="gelu"))
mpt = dict(d_model=48, n_layers=2, n_heads=4, max_seq_len=128)
family("mpt", "MptForCausalLM", "MptConfig", mpt, plain={}, heads=dict(n_heads=6, expansion_ratio=2), clip=dict(attn_config=dict(clip_qkv=0.5)), scale=dict(attn_config=dict(softmax_scale=0.2)), bias=dict(attn_config=dict(alibi_bias_max=4), n_heads=3))
family("persimmon", "PersimmonForCausalLM", "PersimmonConfig", llm(num_key_value_heads=None), plain={}, full=dict(partial_rotary_factor=1.0), nonorm=dict(qk_layernorm=False), linear=dict(rope_scaling=LINEAR), silu=dict(hidden_act="silu"))
mla = dict(kv_lora_rank=16, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10, moe_intermediate_size=24, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, first_k_dense_replace=1, num_key_value_heads=4, num_hidden_layers=3)
family("deepseek_v2", "DeepseekV2ForCausalLM", "DeepseekV2Config", llm(**mla), lite=dict(q_lora_rank=None, topk_method="greedy"), full=dict(q_lora_rank=20, topk_method="group_limited_greedy", n_group=4, topk_group=2, routed_scaling_factor=4.0), norm=dict(q_lora_rank=None, topk_method="greedy", norm_topk_prob=True, routed_scaling_factor=2.0), yarn=dict(q_lora_rank=20, topk_method="greedy", rope_scaling=YARN_MSCALE), bias=dict(q_lora_rank=20, topk_method="greedy", attention_bias=True, mlp_bias=True), dense=dict(q_lora_rank=None, topk_method="greedy", first_k_dense_replace=2, n_shared_experts=1), tied=dict(q_lora_rank=None, topk_method="greedy", tie_word_embeddings=True), yarn2=dict(q_lora_rank=None, topk_method="greedy", rope_scaling=dict(YARN, mscale=0.707, mscale_all_dim=0.707)), act=dict(hidden_act="gelu", q_lora_rank=None, topk_method="greedy"))
family("deepseek_v3", "DeepseekV3ForCausalLM", "DeepseekV3Config", llm(**mla, n_group=4, topk_group=2), plain=dict(q_lora_rank=20), noq=dict(q_lora_rank=None), halves=dict(q_lora_rank=20, rope_interleave=False), nonorm=dict(q_lora_rank=20, norm_topk_prob=False, routed_scaling_factor=1.0), yarn=dict(q_lora_rank=20, rope_scaling=YARN_MSCALE), one_group=dict(q_lora_rank=20, n_group=1, topk_group=1), bias=dict(q_lora_rank=20, attention_bias=True), all_moe=dict(q_lora_rank=20, first_k_dense_replace=0), tied=dict(q_lora_rank=20, tie_word_embeddings=True), yarn2=dict(q_lora_rank=20, rope_scaling=dict(YARN, mscale=1.0, mscale_all_dim=1.0)))
oss = llm(num_hidden_layers=4, intermediate_size=32, head_dim=16, sliding_window=8, num_local_experts=4, num_experts_per_tok=2)
family("gpt_oss", "GptOssForCausalLM", "GptOssConfig", oss, yarn=dict(rope_scaling=dict(YARN, beta_fast=32.0, beta_slow=1.0, truncate=False)), default={}, types=dict(layer_types=[FULL, SLIDE, SLIDE, FULL]), nobias=dict(attention_bias=False), tied=dict(tie_word_embeddings=True), three=dict(num_experts_per_tok=3, num_local_experts=6),
       mxfp4=dict(hidden_size=64, rope_scaling=dict(YARN, beta_fast=32.0, beta_slow=1.0, truncate=False), _before_save=mxfp4.round_experts, _after=mxfp4.pack_experts, _note="experts stored as blocks and scales"))
family("glm", "GlmForCausalLM", "GlmConfig", llm(head_dim=12), plain={}, nobias=dict(attention_bias=False, partial_rotary_factor=1.0), head_dim=dict(head_dim=16, tie_word_embeddings=True))
family("glm4", "Glm4ForCausalLM", "Glm4Config", llm(head_dim=12), plain={}, bias=dict(attention_bias=True), partial=dict(partial_rotary_factor=1.0, head_dim=16))
g4moe = llm(num_hidden_layers=3, head_dim=16, moe_intermediate_size=24, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1, first_k_dense_replace=1)
family("glm4_moe", "Glm4MoeForCausalLM", "Glm4MoeConfig", g4moe, plain={}, qk_norm=dict(use_qk_norm=True), bias=dict(attention_bias=True, n_shared_experts=2), groups=dict(n_group=4, topk_group=2, routed_scaling_factor=2.5), nonorm=dict(norm_topk_prob=False), zero=dict(first_k_dense_replace=0, partial_rotary_factor=1.0))
family("dots1", "Dots1ForCausalLM", "Dots1Config", g4moe, plain=dict(n_group=1, topk_group=1), groups=dict(n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5), window=dict(sliding_window=8, layer_types=[SLIDE, FULL, SLIDE], n_group=1, topk_group=1), window2=dict(sliding_window=8, max_window_layers=1, n_group=1, topk_group=1))
family("smollm3", "SmolLM3ForCausalLM", "SmolLM3Config", llm(num_hidden_layers=5), plain={}, nope=dict(no_rope_layers=[1, 0, 0, 1, 1]), interval=dict(no_rope_layer_interval=2), window=dict(use_sliding_window=True, sliding_window=8, layer_types=[SLIDE, FULL, SLIDE, FULL, FULL]), untied=dict(tie_word_embeddings=False), bias=dict(attention_bias=True, mlp_bias=True), yarn=dict(rope_scaling=YARN))
family("exaone4", "Exaone4ForCausalLM", "Exaone4Config", llm(num_hidden_layers=4), window=dict(sliding_window=8, sliding_window_pattern=4), none=dict(sliding_window=None), types=dict(sliding_window=8, layer_types=[FULL, SLIDE, FULL, SLIDE]), tied=dict(sliding_window=None, tie_word_embeddings=True), llama3=dict(sliding_window=None, rope_scaling=LLAMA3), head_dim=dict(sliding_window=8, head_dim=20))
family("ernie4_5", "Ernie4_5ForCausalLM", "Ernie4_5Config", llm(head_dim=12), plain={}, bias=dict(use_bias=True), untied=dict(tie_word_embeddings=False), head_dim=dict(head_dim=16))
family("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", "Ernie4_5_MoeConfig", llm(num_hidden_layers=4, moe_intermediate_size=24, moe_num_experts=6, moe_k=2, moe_layer_start_index=1), shared=dict(moe_num_shared_experts=2), none=dict(moe_num_shared_experts=0), interval=dict(moe_layer_interval=2), end=dict(moe_layer_end_index=2), bias=dict(use_bias=True), start=dict(moe_layer_start_index=2, tie_word_embeddings=False))
family("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Config", llm(head_dim=16), plain={}, bias=dict(attention_bias=True), alpha=dict(rope_scaling=dict(type="dynamic", alpha=8.0, factor=1.0)), tied=dict(tie_word_embeddings=True))
family("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", "HunYuanMoEV1Config", llm(head_dim=16, num_experts=4, moe_topk=2), plain={}, bias=dict(attention_bias=True), tied=dict(tie_word_embeddings=True))
family("seed_oss", "SeedOssForCausalLM", "SeedOssConfig", llm(head_dim=16), plain={}, bias=dict(attention_bias=False, attention_out_bias=True), mlp=dict(mlp_bias=True))
family("arcee", "ArceeForCausalLM", "ArceeConfig", llm(), plain={}, bias=dict(attention_bias=True, mlp_bias=True), yarn=dict(rope_scaling=YARN))
family("apertus", "ApertusForCausalLM", "ApertusConfig", llm(), plain={}, llama3=dict(rope_scaling=LLAMA3), default=dict(rope_scaling=None), bias=dict(attention_bias=True))
family("helium", "HeliumForCausalLM", "HeliumConfig", llm(head_dim=12), plain={}, bias=dict(attention_bias=True, mlp_bias=True), mha=dict(num_key_value_heads=4))
family("nemotron", "NemotronForCausalLM", "NemotronConfig", llm(), plain={}, bias=dict(attention_bias=True, mlp_bias=True), full=dict(partial_rotary_factor=1.0, head_dim=16), silu=dict(hidden_act="silu"), tied=dict(tie_word_embeddings=True))
family("diffllama", "DiffLlamaForCausalLM", "DiffLlamaConfig", llm(), plain={})
family("jetmoe", "JetMoeForCausalLM", "JetMoeConfig", dict(hidden_size=48, intermediate_size=40, num_hidden_layers=2, num_key_value_heads=2, kv_channels=12, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=128), plain={})
family("xglm", "XGLMForCausalLM", "XGLMConfig", dict(d_model=48, ffn_dim=80, num_layers=2, attention_heads=4, max_position_embeddings=128), plain={}, unscaled=dict(scale_embedding=False), relu=dict(activation_function="relu"), untied=dict(tie_word_embeddings=False))
family("biogpt", "BioGptForCausalLM", "BioGptConfig", llm(num_key_value_heads=None), plain={}, unscaled=dict(scale_embedding=False))
family("ctrl", "CTRLLMHeadModel", "CTRLConfig", dict(n_embd=48, n_layer=2, n_head=4, dff=80, n_positions=128), plain={})
family("openai-gpt", "OpenAIGPTLMHeadModel", "OpenAIGPTConfig", dict(n_embd=48, n_layer=2, n_head=4, n_positions=128), plain={}, relu=dict(afn="relu"), silu=dict(afn="silu"))
family("bitnet", "BitNetForCausalLM", "BitNetConfig", llm(), untied={}, tied=dict(tie_word_embeddings=True))
family("doge", "DogeForCausalLM", "DogeConfig", llm(), plain={})
family("vaultgemma", "VaultGemmaForCausalLM", "VaultGemmaConfig", llm(num_hidden_layers=4, head_dim=16, sliding_window=8, query_pre_attn_scalar=20), plain={}, caps=dict(attn_logit_softcapping=2.0, final_logit_softcapping=4.0), types=dict(layer_types=[FULL, SLIDE, FULL, SLIDE]))
l4 = llm(num_hidden_layers=4, intermediate_size=40, intermediate_size_mlp=80, head_dim=12, num_local_experts=4, num_experts_per_tok=1, attention_chunk_size=1024, rope_scaling=None)
family("llama4_text", "Llama4ForCausalLM", "Llama4TextConfig", l4, plain={}, step=dict(interleave_moe_layer_step=2), norm=dict(use_qk_norm=False), tuned=dict(attn_temperature_tuning=True, floor_scale=8), chunk=dict(attention_chunk_size=16), two=dict(num_experts_per_tok=2))
family("lfm2", "Lfm2ForCausalLM", "Lfm2Config", llm(layer_types=[FULL, FULL]), full={}, conv=dict(layer_types=["conv", FULL]))
hybrid_variants.add(family, llm)
encoder_variants.add(family, llm)
shared_state_variants.add(family, llm)
sparse_variants.add(family, llm)
text_part_variants.add(family, llm)
