"""Makes the folders beside it: tiny models of many families with random weights, and the logits that Hugging Face
transformers computes from them in float32 with eager attention.

    python make.py [NAME…]        needs torch 2.9, transformers 4.57, safetensors

Weights come from a seed and the parameter's name and are rounded to f16 before the logits are computed, so the stored
files are small and exact. The ids are arbitrary.
"""

import json
import math
import os
import shutil
import sys
import zlib

import torch
import transformers as tf

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


LONG = dict(type="longrope", short_factor=[1.0, 1.2, 1.5], long_factor=[2.0, 4.0, 8.0])

MODELS = {  # name: (class, configuration class, parameters)
    "llama": ("LlamaForCausalLM", "LlamaConfig", llm(num_key_value_heads=2)),
    "llama_bias_linear": ("LlamaForCausalLM", "LlamaConfig", llm(attention_bias=True, mlp_bias=True, rope_scaling=LINEAR)),
    "llama_llama3": ("LlamaForCausalLM", "LlamaConfig", llm(rope_theta=500000.0, rope_scaling=LLAMA3, tie_word_embeddings=True)),
    "llama_yarn": ("LlamaForCausalLM", "LlamaConfig", llm(head_dim=16, rope_scaling=YARN)),
    "mistral": ("MistralForCausalLM", "MistralConfig", llm(sliding_window=6)),
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
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", llm(partial_rotary_factor=0.5, use_qkv_bias=True)),
    "stablelm_parallel": ("StableLmForCausalLM", "StableLmConfig", llm(partial_rotary_factor=0.5, use_parallel_residual=True)),
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
    "mpt": ("MptForCausalLM", "MptConfig", dict(d_model=16, n_layers=2, n_heads=4, max_seq_len=64, expansion_ratio=2)),
}

NOISE = {"architectures", "transformers_version", "dtype", "torch_dtype", "use_cache", "initializer_range"}


def randomize(model):
    """Scales that keep activations near one; norms near one, biases far enough from zero to be missed."""
    for name, p in model.named_parameters():
        g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        x = torch.randn(p.shape, generator=g)
        if p.ndim >= 2:
            x = x * 1.5 / math.sqrt(p.shape[-1])
        elif "norm" in name or "ln_" in name:
            x = x * 0.3 + (0 if name.endswith("bias") else 1)
        else:
            x = x * 0.3
        p.data = x.half().float()


def make(name):
    cls, config_cls, params = MODELS[name]
    config = getattr(tf, config_cls)(vocab_size=VOCAB, bos_token_id=1, eos_token_id=2, **{"pad_token_id": 0, **params})
    model = getattr(tf, cls)._from_config(config, attn_implementation="eager").eval()
    randomize(model)
    model.tie_weights()
    out = os.path.join(HERE, name)
    shutil.rmtree(out, ignore_errors=True)
    ids = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(LENGTH)]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, -2:]
    model.half().save_pretrained(out)
    os.remove(os.path.join(out, "generation_config.json"))
    path = os.path.join(out, "config.json")
    with open(path) as f:
        c = {k: v for k, v in json.load(f).items() if k not in NOISE and v is not None}
    with open(path, "w") as f:
        json.dump(c, f, indent=1, sort_keys=True)
        f.write("\n")
    with open(os.path.join(out, "expected.json"), "w") as f:
        json.dump({"ids": ids, "logits": [[round(float(x), 6) for x in row] for row in logits]}, f)
        f.write("\n")
    print(name, "largest logit %.2f" % logits.abs().max())


tf.logging.set_verbosity_error()
for n in sys.argv[1:] or MODELS:
    make(n)
