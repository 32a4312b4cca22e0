"""Makes the folders beside it: tiny models of many families with random weights, and the logits that Hugging Face
transformers computes from them in float32 with its default attention (DIFFERS says where the other differs). expected.json names
the implementation that ran; docs/benchmarks/attention.md compares the two.

    python make.py [NAME…]        needs tools/gen/reference/requirements.txt

Weights come from a seed and a name and are rounded to f16 before the logits are computed, so the stored files are small and
exact. The ids are arbitrary.
"""

import copy
import json
import math
import os
import shutil
import sys
import tempfile
import zlib

import hybrids
import newer_encoders
import older_config
import shared_state
import sparse
import text_parts
import ties
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
VOCAB, LENGTH = 40, 24
FULL, SLIDE = "full_attention", "sliding_attention"
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=8)
LINEAR = dict(rope_type="linear", factor=4.0)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)


def llm(**kw):
    d = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
             max_position_embeddings=64)
    d.update(kw)
    return {k: v for k, v in d.items() if v is not None}


def gpt2(**kw):
    return dict(n_embd=16, n_layer=2, n_head=2, n_positions=64, n_inner=24, **kw)


def falcon(**kw):
    return dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, ffn_hidden_size=24, max_position_embeddings=64, **kw)


def latent(**kw):
    d = llm(num_key_value_heads=2, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, kv_lora_rank=10, n_routed_experts=8, num_experts_per_tok=3,
            moe_intermediate_size=8, n_shared_experts=1, n_group=4, topk_group=2, first_k_dense_replace=1)
    return {**d, **kw}


def enc(**kw):
    return llm(num_key_value_heads=None, **kw)


def t5(**kw):
    return dict(d_model=16, d_kv=6, d_ff=24, num_layers=2, num_heads=2, relative_attention_num_buckets=8, relative_attention_max_distance=12, **kw)


def bart(**kw):
    d = dict(d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=20, max_position_embeddings=64)
    d.update(kw)
    return d


DISTIL = dict(dim=16, hidden_dim=24, n_layers=2, n_heads=2, max_position_embeddings=64)
LONG = dict(type="longrope", short_factor=[1.0, 1.2, 1.5], long_factor=[2.0, 4.0, 8.0])

MODELS = {  # name: (class, configuration class, parameters)
    "llama": ("LlamaForCausalLM", "LlamaConfig", llm(num_key_value_heads=2)),
    "llama_bias_linear": ("LlamaForCausalLM", "LlamaConfig", llm(attention_bias=True, mlp_bias=True, rope_scaling=LINEAR)),
    "llama_llama3": ("LlamaForCausalLM", "LlamaConfig", llm(rope_theta=500000.0, rope_scaling=LLAMA3, tie_word_embeddings=True)),
    "llama_yarn": ("LlamaForCausalLM", "LlamaConfig", llm(head_dim=16, rope_scaling=YARN)),
    "llama_yarn_no_factor": ("LlamaForCausalLM", "LlamaConfig", llm(rope_parameters=dict(YARN, factor=None, rope_theta=5000.0))),
    "llama_longrope_factor": ("LlamaForCausalLM", "LlamaConfig", llm(rope_parameters=dict(LONG, rope_type="longrope", rope_theta=5000.0, original_max_position_embeddings=8, factor=2.5, long_factor=[1.5, 2.0, 3.0, 5.0], short_factor=[1.0, 1.1, 1.2, 1.3]))),
    "llama_own_head": ("LlamaForCausalLM", "LlamaConfig", llm(tie_word_embeddings=True, _own_head=True)),
    "mistral": ("MistralForCausalLM", "MistralConfig", llm(sliding_window=6)),
    "ministral3": ("Ministral3ForCausalLM", "Ministral3Config", llm(head_dim=8, rope_parameters=dict(YARN, rope_theta=10000.0, mscale=0.7, mscale_all_dim=0.9, llama_4_scaling_beta=0.3))),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", llm(num_hidden_layers=3, use_sliding_window=True, sliding_window=6, max_window_layers=1)),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", llm(head_dim=12, tie_word_embeddings=True)),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", llm(sliding_window=6, pad_token_id=0)),
    "phi3_longrope": ("Phi3ForCausalLM", "Phi3Config", llm(partial_rotary_factor=0.75, original_max_position_embeddings=32, pad_token_id=0, rope_scaling=LONG)),
    "phi3_longrope_long": ("Phi3ForCausalLM", "Phi3Config", llm(partial_rotary_factor=0.75, original_max_position_embeddings=4, pad_token_id=0, rope_scaling=LONG)),
    "granite": ("GraniteForCausalLM", "GraniteConfig", llm(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.12, logits_scaling=2.0)),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", llm(head_dim=12, hidden_act="gelu_pytorch_tanh")),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", llm(head_dim=12, sliding_window=6, query_pre_attn_scalar=10, attn_logit_softcapping=2.0, final_logit_softcapping=3.0)),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", llm(num_hidden_layers=3, head_dim=12, sliding_window=6, layer_types=[SLIDE, FULL, SLIDE], rope_scaling=LINEAR)),
    "olmo": ("OlmoForCausalLM", "OlmoConfig", llm(clip_qkv=0.5)),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", llm()),
    "olmo3": ("Olmo3ForCausalLM", "Olmo3Config", llm(num_hidden_layers=3, sliding_window=6, layer_types=[SLIDE, FULL, SLIDE], rope_scaling=YARN)),
    "olmo3_two_bases": ("Olmo3ForCausalLM", "Olmo3Config", llm(num_hidden_layers=3, sliding_window=6, layer_types=[SLIDE, FULL, SLIDE], rope_parameters={FULL: dict(YARN, rope_theta=10000.0), SLIDE: dict(rope_type="default", rope_theta=500.0)})),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", llm(partial_rotary_factor=0.5, use_qkv_bias=True)),
    "stablelm_parallel": ("StableLmForCausalLM", "StableLmConfig", llm(partial_rotary_factor=0.5, use_parallel_residual=True)),
    "cwm": ("CwmForCausalLM", "CwmConfig", llm(num_hidden_layers=5, head_dim=12, sliding_window=6, rope_parameters=dict(LLAMA3, rope_theta=5000.0))),
    "cwm_layers": ("CwmForCausalLM", "CwmConfig", llm(num_hidden_layers=3, head_dim=8, sliding_window=6, layer_types=[SLIDE, FULL, SLIDE], mlp_bias=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0))),
    "cohere": ("CohereForCausalLM", "CohereConfig", llm(logit_scale=0.25)),
    "cohere_qk_norm": ("CohereForCausalLM", "CohereConfig", llm(logit_scale=0.5, use_qk_norm=True)),
    "cohere2": ("Cohere2ForCausalLM", "Cohere2Config", llm(num_hidden_layers=4, sliding_window=6)),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", llm(num_hidden_layers=4, no_rope_layers=[1, 0, 0, 1])),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", llm(sliding_window=6)),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", gpt2()),
    "gpt2_inverse_layer": ("GPT2LMHeadModel", "GPT2Config", gpt2(scale_attn_by_inverse_layer_idx=True)),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", "GPTBigCodeConfig", gpt2()),
    "gpt_bigcode_mha": ("GPTBigCodeForCausalLM", "GPTBigCodeConfig", gpt2(multi_query=False)),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", llm(num_key_value_heads=None, rotary_pct=0.5)),
    "gpt_neox_sequential": ("GPTNeoXForCausalLM", "GPTNeoXConfig", llm(num_key_value_heads=None, rotary_pct=1.0, use_parallel_residual=False, attention_bias=False)),
    "falcon_7b": ("FalconForCausalLM", "FalconConfig", falcon(multi_query=True, parallel_attn=True, bias=False)),
    "falcon_40b": ("FalconForCausalLM", "FalconConfig", falcon(num_kv_heads=2, new_decoder_architecture=True, bias=False)),
    "falcon_11b": ("FalconForCausalLM", "FalconConfig", falcon(num_kv_heads=2, new_decoder_architecture=True, num_ln_in_parallel_attn=1)),
    "falcon_rw": ("FalconForCausalLM", "FalconConfig", falcon(multi_query=False, parallel_attn=False, bias=True, alibi=True)),
    "opt": ("OPTForCausalLM", "OPTConfig", dict(hidden_size=16, ffn_dim=24, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=64, word_embed_proj_dim=16)),
    "opt_350m": ("OPTForCausalLM", "OPTConfig", dict(hidden_size=16, ffn_dim=24, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=64, word_embed_proj_dim=12, do_layer_norm_before=False)),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(hidden_size=16, n_layer=2, n_head=4)),
    "bloom_post": ("BloomForCausalLM", "BloomConfig", dict(hidden_size=24, n_layer=2, n_head=6, apply_residual_connection_post_layernorm=True)),
    "phi": ("PhiForCausalLM", "PhiConfig", llm(partial_rotary_factor=0.5, hidden_act="gelu_new")),
    "phi_qk_norm": ("PhiForCausalLM", "PhiConfig", llm(partial_rotary_factor=0.5, qk_layernorm=True)),
    "arcee": ("ArceeForCausalLM", "ArceeConfig", llm()),
    "nemotron": ("NemotronForCausalLM", "NemotronConfig", llm(partial_rotary_factor=0.5)),
    "glm": ("GlmForCausalLM", "GlmConfig", llm(head_dim=8)),
    "glm4": ("Glm4ForCausalLM", "Glm4Config", llm(head_dim=8, attention_bias=True)),
    "exaone4": ("Exaone4ForCausalLM", "Exaone4Config", llm(num_hidden_layers=4, sliding_window=6, sliding_window_pattern=4)),
    "helium": ("HeliumForCausalLM", "HeliumConfig", llm(head_dim=8)),
    "hunyuan": ("HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Config", llm(head_dim=8)),
    "persimmon": ("PersimmonForCausalLM", "PersimmonConfig", llm(num_key_value_heads=None)),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", gpt2(rotary_dim=4)),
    "gpt_neo": ("GPTNeoForCausalLM", "GPTNeoConfig", dict(hidden_size=16, intermediate_size=24, num_layers=2, num_heads=2, max_position_embeddings=64, attention_types=[[["global", "local"], 1]], window_size=6)),
    "bitnet": ("BitNetForCausalLM", "BitNetConfig", llm(tie_word_embeddings=True)),
    "bitnet_biased": ("BitNetForCausalLM", "BitNetConfig", llm(attention_bias=True)),
    "bitnet_untied": ("BitNetForCausalLM", "BitNetConfig", llm()),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", llm(num_local_experts=4, sliding_window=6)),
    "qwen2_moe": ("Qwen2MoeForCausalLM", "Qwen2MoeConfig", llm(num_hidden_layers=4, decoder_sparse_step=2, mlp_only_layers=[3], num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, shared_expert_intermediate_size=12)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", llm(head_dim=12, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, norm_topk_prob=True, mlp_only_layers=[0])),
    "gpt_oss": ("GptOssForCausalLM", "GptOssConfig", llm(head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=6, rope_scaling=dict(YARN, truncate=False))),
    "gpt_oss_alpha": ("GptOssForCausalLM", "GptOssConfig", llm(head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=6, swiglu_alpha=0.9, swiglu_limit=2.0)),
    "minimax_m2": ("MiniMaxM2ForCausalLM", "MiniMaxM2Config", llm(head_dim=8, rotary_dim=4, num_local_experts=4, num_experts_per_tok=2)),
    "olmoe": ("OlmoeForCausalLM", "OlmoeConfig", llm(num_experts=4, num_experts_per_tok=2, clip_qkv=1.0)),
    "granitemoe": ("GraniteMoeForCausalLM", "GraniteMoeConfig", llm(num_local_experts=4, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.12, logits_scaling=2.0)),
    "glm4_moe": ("Glm4MoeForCausalLM", "Glm4MoeConfig", llm(head_dim=8, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, n_shared_experts=1, routed_scaling_factor=1.5, use_qk_norm=True, attention_bias=True)),
    "dots1": ("Dots1ForCausalLM", "Dots1Config", llm(n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, n_shared_experts=1, first_k_dense_replace=1, n_group=2, topk_group=1, norm_topk_prob=True)),
    "deepseek_v2": ("DeepseekV2ForCausalLM", "DeepseekV2Config", latent(topk_method="group_limited_greedy", q_lora_rank=None, routed_scaling_factor=2.0, moe_layer_freq=1)),
    "deepseek_v2_q_lora": ("DeepseekV2ForCausalLM", "DeepseekV2Config", latent(topk_method="greedy", q_lora_rank=10, rope_scaling=dict(YARN, mscale=0.7, mscale_all_dim=0.9), attention_bias=True)),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", latent(q_lora_rank=10, routed_scaling_factor=2.0, rope_scaling=dict(YARN, mscale=0.7, mscale_all_dim=0.9))),
    "deepseek_v3_halves": ("DeepseekV3ForCausalLM", "DeepseekV3Config", latent(q_lora_rank=None, rope_interleave=False, norm_topk_prob=False)),
    "deepseek_v3_eps": ("DeepseekV3ForCausalLM", "DeepseekV3Config", latent(num_attention_heads=4, num_key_value_heads=4, q_lora_rank=10, rms_norm_eps=0.1)),
    "llama_dynamic": ("LlamaForCausalLM", "LlamaConfig", llm(max_position_embeddings=8, rope_scaling=dict(rope_type="dynamic", factor=2.0))),
    "apertus": ("ApertusForCausalLM", "ApertusConfig", llm(rope_scaling=None)),
    "phimoe": ("PhimoeForCausalLM", "PhimoeConfig", llm(head_dim=8, num_local_experts=4, router_jitter_noise=0.2)),
    "granitemoeshared": ("GraniteMoeSharedForCausalLM", "GraniteMoeSharedConfig", llm(num_local_experts=4, shared_intermediate_size=20)),
    "ernie4_5_moe": ("Ernie4_5_MoeForCausalLM", "Ernie4_5_MoeConfig", llm(num_hidden_layers=3, head_dim=8, moe_num_experts=4, moe_k=2, moe_intermediate_size=8, moe_layer_end_index=1)),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig", dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, n_inner=24, rotary_dim=4)),
    "xglm": ("XGLMForCausalLM", "XGLMConfig", dict(d_model=16, ffn_dim=24, num_layers=2, attention_heads=2, max_position_embeddings=64)),
    "gpt_neox_japanese": ("GPTNeoXJapaneseForCausalLM", "GPTNeoXJapaneseConfig", dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_multiple_size=2, max_position_embeddings=64, rotary_pct=0.5)),
    "mpt": ("MptForCausalLM", "MptConfig", dict(d_model=16, n_layers=2, n_heads=4, max_seq_len=64, expansion_ratio=2)),
}

# Where transformers' eager attention differs from its default, which computes what the model was trained with.
DIFFERS = {"falcon_rw": "eager adds ALiBi twice"}

ENCODERS = {  # the same, and which of transformers' results are which of ours
    "bert": ("BertModel", "BertConfig", enc(hidden_act="gelu_new"), dict(pooled="pooler_output")),
    "bert_mlm": ("BertForMaskedLM", "BertConfig", enc(), dict(logits="logits")),
    "bert_classes": ("BertForSequenceClassification", "BertConfig", enc(num_labels=3), dict(classes="logits")),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", enc(pad_token_id=1), dict(logits="logits")),
    "roberta_classes": ("RobertaForSequenceClassification", "RobertaConfig", enc(pad_token_id=1, num_labels=3), dict(classes="logits")),
    "xlm_roberta": ("XLMRobertaModel", "XLMRobertaConfig", enc(pad_token_id=1), dict(pooled="pooler_output")),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertConfig", DISTIL, dict(logits="logits")),
    "distilbert_classes": ("DistilBertForSequenceClassification", "DistilBertConfig", dict(DISTIL, num_labels=3), dict(classes="logits")),
    "mpnet": ("MPNetForMaskedLM", "MPNetConfig", enc(), dict(logits="logits")),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", enc(embedding_size=12), dict(logits="logits")),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", enc(embedding_size=12), dict(logits="logits")),
    "modernbert": ("ModernBertForMaskedLM", "ModernBertConfig", enc(num_hidden_layers=5, local_attention=8, cls_token_id=1, sep_token_id=2), dict(logits="logits")),
    "modernbert_classes_mean": ("ModernBertForSequenceClassification", "ModernBertConfig", enc(local_attention=6, classifier_pooling="mean", num_labels=3), dict(classes="logits")),
    "megatron_bert": ("MegatronBertForMaskedLM", "MegatronBertConfig", enc(), dict(logits="logits")),
    "roberta_prelayernorm": ("RobertaPreLayerNormForMaskedLM", "RobertaPreLayerNormConfig", enc(pad_token_id=1), dict(logits="logits")),
    "xlm_roberta_xl": ("XLMRobertaXLForMaskedLM", "XLMRobertaXLConfig", enc(pad_token_id=1), dict(logits="logits")),
    "data2vec_text": ("Data2VecTextForMaskedLM", "Data2VecTextConfig", enc(pad_token_id=1), dict(logits="logits")),
    "rembert": ("RemBertForMaskedLM", "RemBertConfig", enc(input_embedding_size=12, output_embedding_size=20), dict(logits="logits")),
    "roformer": ("RoFormerForMaskedLM", "RoFormerConfig", enc(embedding_size=12), dict(logits="logits")),
    "ernie": ("ErnieForMaskedLM", "ErnieConfig", enc(use_task_id=True, task_type_vocab_size=3), dict(logits="logits")),
    "big_bird": ("BigBirdForMaskedLM", "BigBirdConfig", enc(attention_type="original_full", rescale_embeddings=True), dict(logits="logits")),
    "albert_wide": ("AlbertForMaskedLM", "AlbertConfig", enc(embedding_size=16), dict(logits="logits")),
    "albert_groups": ("AlbertForMaskedLM", "AlbertConfig", enc(embedding_size=12, num_hidden_layers=5, num_hidden_groups=2), dict(logits="logits")),
    "albert_inner": ("AlbertModel", "AlbertConfig", enc(embedding_size=12, num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2), dict(pooled="pooler_output")),
    "albert_one_group": ("AlbertForSequenceClassification", "AlbertConfig", enc(embedding_size=12, num_hidden_layers=3, inner_group_num=2, num_labels=3), dict(classes="logits")),
    "modernbert_classes": ("ModernBertForSequenceClassification", "ModernBertConfig", enc(global_attn_every_n_layers=2, local_attention=6, norm_bias=True, mlp_bias=True, attention_bias=True, num_labels=3), dict(classes="logits")),
}

TRANSLATORS = {
    "t5": ("T5ForConditionalGeneration", "T5Config", t5()),
    "t5_gated": ("T5ForConditionalGeneration", "T5Config", t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_decoder_layers=3, _own_head=True)),
    "t5_act": ("T5ForConditionalGeneration", "T5Config", t5(feed_forward_proj="gated-gelu", dense_act_fn="silu")),
    "umt5": ("UMT5ForConditionalGeneration", "UMT5Config", t5(feed_forward_proj="gated-gelu")),
    "umt5_own_head": ("UMT5ForConditionalGeneration", "UMT5Config", t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False, _own_head=True)),
    "bart": ("BartForConditionalGeneration", "BartConfig", bart(decoder_layers=1)),
    "bart_own_tables": ("BartForConditionalGeneration", "BartConfig", bart(encoder_layers=1, decoder_layers=1, tie_word_embeddings=False)),
    "mbart": ("MBartForConditionalGeneration", "MBartConfig", bart(scale_embedding=True)),
    "m2m_100": ("M2M100ForConditionalGeneration", "M2M100Config", bart(pad_token_id=1)),
    "marian": ("MarianMTModel", "MarianConfig", bart(activation_function="silu", scale_embedding=True, decoder_start_token_id=0)),
    "marian_two_tables": ("MarianMTModel", "MarianConfig", bart(share_encoder_decoder_embeddings=False, decoder_vocab_size=VOCAB, tie_word_embeddings=False, decoder_start_token_id=0)),
    "pegasus": ("PegasusForConditionalGeneration", "PegasusConfig", bart()),
    "blenderbot": ("BlenderbotForConditionalGeneration", "BlenderbotConfig", bart()),
}

REWRITTEN = {"gte_ntk", "qwen2_5_vl"}  # their config.json is read by their own code or an older version

NOISE = {"architectures", "transformers_version", "dtype", "torch_dtype", "use_cache", "initializer_range"}


def draw(name, shape):
    """Scales that keep activations near one; norms near one, biases far enough from zero to be missed."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
    if len(shape) >= 2:
        x = x * 1.5 / math.sqrt(shape[-1])
    elif "norm" in name or "ln_" in name:
        x = x * 0.3 + (0 if name.endswith("bias") else 1)
    elif name.endswith("A_log"):
        x = x - 1
    else:
        x = x * 0.3
    return x.half().float()


def randomize(model):
    """Weights by the names of transformers' parameters."""
    for name, p in model.named_parameters():
        if p.requires_grad:  # sines are not
            p.data = draw(name, p.shape)
    model.tie_weights()


def randomize_stored(model, path, own_head):
    """Weights by the names in the file, which are those of published models and stay as they are."""
    kept = {k for k, _ in model.named_buffers()} | {k for k, p in model.named_parameters() if not p.requires_grad}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        file = os.path.join(folder, "model.safetensors")
        stored = {k: x if k in kept else draw(k, x.shape) for k, x in load_file(file).items()}
        if own_head:
            stored["lm_head.weight"] = draw("lm_head.weight", model.lm_head.weight.shape)
        save_file(stored, file, metadata={"format": "pt"})
        return type(model).from_pretrained(folder, **path).eval()


def build(cls, config_cls, params, attention=None, stored=False):
    """A model with random weights; attention None is transformers' choice."""
    params = copy.deepcopy(params)  # which a configuration fills in
    own_head = params.pop("_own_head", False)
    config = newer_encoders.published(config_cls)(vocab_size=VOCAB, **{"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, **params})
    path = {"attn_implementation": attention} if attention else {}
    model = newer_encoders.published(cls)._from_config(config, **path).eval()
    if stored or own_head:
        model = randomize_stored(model, path, own_head)
    else:
        randomize(model)
    for n, b in model.named_buffers():
        if n.endswith(("correction_bias", "expert_bias")) and b.ndim == 1:
            b.data = torch.linspace(0.3, 0.05, len(b)).half().float()
        elif n.endswith("tid2eid"):  # experts by token id
            t, k = torch.arange(b.shape[0])[:, None], torch.arange(b.shape[1])
            b.copy_((t * t + k * (1 + t % 2)) % model.config.n_routed_experts)
        elif n.endswith("layer_scalar"):
            b.fill_(0.75)
    return model


def rows(x):
    return [[round(float(v), 6) for v in row] for row in x]


def wanted(config, class_default):
    """What config.json keeps: null only where it overrides a default."""
    return {k: v for k, v in config.items() if k not in NOISE and (v is not None or class_default.get(k) is not None)}


def save(name, model, expected, folder=HERE):
    out = os.path.join(folder, name)
    shutil.rmtree(out, ignore_errors=True)
    model.half().save_pretrained(out)
    generation = os.path.join(out, "generation_config.json")
    if os.path.exists(generation):
        os.remove(generation)
    path = os.path.join(out, "config.json")
    with open(path) as f:
        default = type(model.config)().to_dict()
        c = wanted(json.load(f), default)
    if type(model).__name__ in ("EuroBertForMaskedLM", "LongformerForSequenceClassification"):  # which tensors do not tell
        c["architectures"] = [type(model).__name__]
    newer_encoders.published_config(name, c)
    text_parts.published_config(name, c)
    if folder == HERE:
        older_config.rewrite(name, c, default)
    with open(path, "w") as f:
        json.dump(c, f, indent=1, sort_keys=True)
        f.write("\n")
    newer_encoders.write_dense(name, out)
    with open(os.path.join(out, "expected.json"), "w") as f:
        json.dump(expected, f)
        f.write("\n")
    print(name, {k: "%.2f" % max(abs(v) for row in x for v in row) for k, x in expected.items() if k != "whole" and isinstance(x[0], list)})


@torch.no_grad()
def decoder_outputs(model):
    length = hybrids.LENGTH if type(model).__name__ in {cls for cls, *_ in [*hybrids.MODELS.values(), *sparse.MODELS.values()]} else LENGTH
    ids = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(length)]
    with ties.watch(model) as tied:
        expected = {"ids": ids, "logits": rows(model(torch.tensor([ids]), use_cache=False).logits[0, -2:])}
    if tied:
        raise RuntimeError(tied[0])
    if (getattr(model.config, "rope_parameters", None) or {}).get("rope_type") == "dynamic":
        expected["whole"] = True  # angles depend on the length of what is read at once
    return expected


@torch.no_grad()
def encoder_outputs(model, results):
    ids = [(7 * i * i + 3 * i + 5) % (VOCAB - 2) + 2 for i in range(LENGTH)]  # without padding's id
    kw = {}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        kw["token_type_ids"] = torch.tensor([[int(i > 9) for i in range(LENGTH)]])
    out = model(torch.tensor([ids]), output_hidden_states=True, **kw)
    expected = {"ids": ids, "wanted": [0]}
    if kw:
        expected["types"] = kw["token_type_ids"][0].tolist()
    if not type(model).__name__.startswith(("ModernBert", "RobertaPreLayerNorm")):  # their hidden states are those in front of the last norm
        expected["hidden"] = rows(out.hidden_states[-1][0, -2:])
    for ours, theirs in results.items():
        x = getattr(out, theirs)
        if x.ndim == 3:
            expected["wanted"] = [3, 20]
            x = x[0, expected["wanted"]]
        expected[ours] = rows(x)
    return expected


@torch.no_grad()
def translator_outputs(model):
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias = torch.linspace(-1, 1, model.final_logits_bias.shape[1]).half().float()[None]
    ids = [(7 * i * i + 3 * i + 5) % (VOCAB - 2) + 2 for i in range(LENGTH)]
    decoder_ids = [(5 * i * i + 11 * i + 3) % 30 for i in range(12)]
    out = model(torch.tensor([ids]), decoder_input_ids=torch.tensor([decoder_ids]))
    hidden = out.encoder_last_hidden_state
    return {"ids": ids, "decoder_ids": decoder_ids, "hidden": rows(hidden[0, -2:]), "logits": rows(out.logits[0, -2:])}


TABLES = [(MODELS, decoder_outputs), (hybrids.MODELS, decoder_outputs), (shared_state.MODELS, decoder_outputs), (sparse.MODELS, decoder_outputs), (text_parts.MODELS, decoder_outputs), (ENCODERS, encoder_outputs), (newer_encoders.MODELS, newer_encoders.outputs), (TRANSLATORS, translator_outputs)]
NAMES = [name for table, _ in TABLES for name in table]


def run(name, attention=None, load=None):
    """The model of a name and what it computes, with the implementation of attention that ran under "attention"; load, if
    given, makes the model of its class and attention."""
    for table, outputs in TABLES:
        if name in table:
            cls, config_cls, params, *rest = table[name]
            model = load(cls, attention) if load else build(cls, config_cls, params, attention, stored=table is MODELS)
            return model, {"attention": model.config._attn_implementation, **outputs(model, *rest), **newer_encoders.embedding(name, model)}
    raise SystemExit(f"{name}: no such model; there are {', '.join(NAMES)}")


def stored(name):
    """Loads a folder as transformers does."""
    return lambda cls, attention: getattr(tf, cls).from_pretrained(os.path.join(HERE, name), dtype=torch.float32, attn_implementation=attention).eval()


def close(a, b):
    """The same but for tables of sines and slopes, which the folder has in f16."""
    return all(torch.allclose(torch.tensor(a[k]), torch.tensor(x), rtol=0, atol=1e-3 * max(1, torch.tensor(x).abs().max())) for k, x in b.items() if isinstance(x, list))


def main():
    tf.logging.set_verbosity_error()
    tf.utils.logging.disable_progress_bar()
    for name in sys.argv[1:] or NAMES:
        model, expected = run(name)
        save(name, model, expected)
        if hasattr(tf, type(model).__name__) and name not in REWRITTEN and not close(run(name, load=stored(name))[1], expected):
            raise SystemExit(f"{name}: transformers computes something else of the folder")


if __name__ == "__main__":
    main()
