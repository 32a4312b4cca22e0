"""Encoders for breadth.py: embedding and reranking models of the last years. Models whose code
transformers does not have are in remote_encoders.py."""

import torch
import transformers as tf
from record import Record

LINEAR = dict(rope_type="linear", factor=4.0, rope_theta=500.0)
FULL, SLIDE = "full_attention", "sliding_attention"
LENGTH, MASKED = 40, (3, 17, 38)


def add(family, llm):
    """Adds the families with breadth_variants' functions."""
    def encoder(name, model, config, params, /, **kw):
        family(name, model, config, {**params, "_encoder": True}, **kw)

    rotary_families(encoder)
    bidirectional_families(encoder, llm)
    classifier_families(encoder, llm)
    esm_families(encoder)
    deberta_families(encoder)
    longformer_families(encoder)
    remote_families(encoder)


def enc(**kw):
    return dict(hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **kw)


def heads(family, name, prefix, config, base, /, **variants):
    """The variants of a family, each as masked LM, and the first also as base model and classifier."""
    first = {k: v for k, v in next(iter(variants.values())).items()}
    family(name, prefix + "ForMaskedLM", config, base, **variants)
    family(name, prefix + "ForSequenceClassification", config, base, classes=dict(first, num_labels=3), score=dict(first, num_labels=1))
    family(name, prefix + "Model", config, base, model=first)


def rotary_families(family):
    rope = lambda theta, **kw: dict(rope_parameters=dict(rope_type="default", rope_theta=theta, **kw))
    heads(family, "nomic_bert", "NomicBert", "NomicBertConfig", enc(), plain={}, gelu=dict(hidden_act="gelu"), wide=dict(head_dim=16), types=dict(type_vocab_size=3), one_type=dict(type_vocab_size=1), theta=rope(50.0), linear=dict(rope_parameters=LINEAR), eps=dict(layer_norm_eps=1e-2),
          published=dict(_edit=dict(hidden_size=None, num_hidden_layers=None, num_attention_heads=None, intermediate_size=None, hidden_act=None, max_position_embeddings=None, rope_parameters=None, layer_norm_eps=None, head_dim=None, n_embd=48, n_layer=3, n_head=4, n_inner=80, n_positions=128, activation_function="swiglu", rotary_emb_base=1000, rotary_emb_fraction=1.0,
                                    rotary_emb_interleaved=False, rotary_emb_scale_base=None, rotary_scaling_factor=None, qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False, prenorm=False, use_rms_norm=False, causal=False, parallel_block=False, layer_norm_epsilon=1e-12)))
    heads(family, "gte", "Gte", "GteConfig", enc(), plain={}, gelu=dict(hidden_act="gelu_new"), no_types=dict(type_vocab_size=0), types=dict(type_vocab_size=2), theta=rope(50.0), linear=dict(rope_parameters=LINEAR), eps=dict(layer_norm_eps=1e-2), untied=dict(tie_word_embeddings=False),
          published=dict(_edit=dict(model_type="new", architectures=["NewForMaskedLM"], rope_parameters=None, rope_theta=160000.0, rope_scaling=None, position_embedding_type="rope", layer_norm_type="layer_norm", pack_qkv=True, unpad_inputs=False, use_memory_efficient_attention=False, logn_attention_scale=False)),
          ntk=dict(rope_parameters=dict(rope_type="dynamic", factor=2.0, rope_theta=500.0)))
    heads(family, "jina_embeddings_v3", "JinaEmbeddingsV3", "JinaEmbeddingsV3Config", enc(), plain={}, gelu=dict(hidden_act="gelu_new"), types=dict(type_vocab_size=2), theta=rope(50.0), linear=dict(rope_parameters=LINEAR), eps=dict(layer_norm_eps=1e-2), untied=dict(tie_word_embeddings=False))
    euro = {k: v for k, v in enc().items() if "dropout" not in k}
    heads(family, "eurobert", "EuroBert", "EuroBertConfig", dict(euro, mask_token_id=4), plain={}, gqa=dict(num_key_value_heads=2), biased=dict(attention_bias=True, mlp_bias=True), wide=dict(head_dim=16), tied=dict(tie_word_embeddings=True), act=dict(hidden_act="gelu"), theta=rope(250000.0), linear=dict(rope_parameters=LINEAR), eps=dict(rms_norm_eps=1e-2), published=dict(_edit=dict(rope_parameters=None, rope_theta=10000, rope_scaling=None, head_dim=None)))
    family("eurobert", "EuroBertForSequenceClassification", "EuroBertConfig", dict(euro, mask_token_id=4, num_labels=3), bos=dict(classifier_pooling="bos"), mean=dict(classifier_pooling="mean"))


def bidirectional_families(family, llm):
    """Decoders without causal attention: EmbeddingGemma."""
    gemma = llm(num_hidden_layers=4, head_dim=16, sliding_window=8, query_pre_attn_scalar=20, use_bidirectional_attention=True, layer_types=[SLIDE, FULL, SLIDE, FULL])
    family("embeddinggemma", "Gemma3TextModel", "Gemma3TextConfig", gemma, plain={}, odd=dict(sliding_window=11), wide=dict(sliding_window=64), all_full=dict(layer_types=[FULL] * 4), types=dict(layer_types=None, num_hidden_layers=7), mha=dict(num_key_value_heads=4), eps=dict(rms_norm_eps=1e-2), act=dict(hidden_activation="gelu"),
           scale=dict(layer_types=None, num_hidden_layers=7, query_pre_attn_scalar=16),
           published=dict(layer_types=None, num_hidden_layers=7, _edit=dict(rope_parameters=None, rope_theta=1000000.0, rope_local_base_freq=10000.0, rope_scaling=None, attention_bias=False, final_logit_softcapping=None, attn_logit_softcapping=None, _sliding_window_pattern=6)))


def deberta_families(family):
    both = dict(relative_attention=True, pos_att_type=["c2p", "p2c"], position_biased_input=False, type_vocab_size=0)
    log = dict(both, position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True)
    heads(family, "deberta_v2", "DebertaV2", "DebertaV2Config", enc(pad_token_id=0), v3=log, own=dict(log, share_att_key=False), linear=dict(both, max_relative_positions=12), whole=dict(both), buckets=dict(log, position_buckets=16, max_relative_positions=30), far=dict(log, max_relative_positions=12), c2p=dict(log, pos_att_type=["c2p"]), p2c=dict(log, pos_att_type=["p2c"]), no_norm=dict(log, norm_rel_ebd="none"),
          plain={}, scaled=dict(pos_att_type=["c2p", "p2c"]), biased=dict(log, position_biased_input=True), types=dict(log, type_vocab_size=2), narrow=dict(log, embedding_size=24), narrow_biased=dict(log, embedding_size=24, position_biased_input=True, type_vocab_size=2), act=dict(log, hidden_act="gelu_new", pooler_hidden_act="tanh"), heads=dict(log, num_attention_heads=6), eps=dict(log, layer_norm_eps=1e-2),
          head=dict(log, legacy=False), published=dict(log, _edit=dict(pos_att_type="p2c|c2p", max_relative_positions=-1, legacy=None, pooler_hidden_size=48)), long=dict(log, _prompt=120, position_buckets=16))
    conv = dict(log, conv_kernel_size=3, conv_act="gelu")
    family("deberta_v2", "DebertaV2ForSequenceClassification", "DebertaV2Config", enc(pad_token_id=0), conv_classes=dict(conv, num_labels=3))
    family("deberta_v2", "DebertaV2Model", "DebertaV2Config", enc(pad_token_id=0), conv_model=conv)
    family("deberta_v2", "DebertaV2ForMaskedLM", "DebertaV2Config", enc(pad_token_id=0), conv=conv, conv_one=dict(conv, conv_kernel_size=1), conv_five=dict(conv, conv_kernel_size=5), conv_nine=dict(conv, conv_kernel_size=9), conv_tanh=dict(log, conv_kernel_size=3), conv_relu=dict(conv, conv_act="relu"), conv_silu=dict(conv, conv_act="silu", conv_kernel_size=5), conv_new=dict(conv, conv_act="gelu_new"), conv_linear=dict(conv, conv_act="linear"),
          conv_groups=dict(conv, conv_groups=2), conv_more_groups=dict(conv, conv_groups=6, conv_kernel_size=5), conv_channels=dict(conv, conv_groups=48), conv_one_groups=dict(conv, conv_groups=4, conv_kernel_size=1, conv_act="sigmoid"), conv_own=dict(conv, share_att_key=False), conv_absolute=dict(conv_kernel_size=3), conv_linear_positions=dict(both, max_relative_positions=12, conv_kernel_size=3), conv_buckets=dict(conv, position_buckets=16, max_relative_positions=30), conv_c2p=dict(conv, pos_att_type=["c2p"]),
          conv_biased=dict(conv, position_biased_input=True, type_vocab_size=2), conv_narrow=dict(conv, embedding_size=24), conv_layer=dict(conv, num_hidden_layers=1), conv_deep=dict(conv, num_hidden_layers=6), conv_eps=dict(conv, layer_norm_eps=1e-2), conv_none=dict(log, conv_kernel_size=0, conv_act="gelu"), conv_head=dict(conv, legacy=False), conv_long=dict(conv, _prompt=120, position_buckets=16), conv_short=dict(conv, _prompt=2 + MASKED[-1], conv_kernel_size=7),
          conv_published=dict(conv, _edit=dict(pos_att_type="p2c|c2p", max_relative_positions=-1, legacy=None, pooler_hidden_size=48, attention_head_size=12)))
    heads(family, "deberta", "Deberta", "DebertaConfig", enc(pad_token_id=0), both=both, short=dict(both, max_relative_positions=12), c2p=dict(both, pos_att_type=["c2p"]), p2c=dict(both, pos_att_type=["p2c"]), p2p=dict(both, pos_att_type=["c2p", "p2c", "p2p"]), plain={}, biased=dict(both, position_biased_input=True), types=dict(both, type_vocab_size=2), published=dict(both, _edit=dict(pos_att_type="c2p|p2c", max_relative_positions=-1)), head=dict(both, legacy=False))


def longformer_families(family):
    base = enc(pad_token_id=1, attention_window=8)
    heads(family, "longformer", "Longformer", "LongformerConfig", base, plain={}, wide=dict(attention_window=128), layers=dict(attention_window=[4, 12, 6]), types=dict(type_vocab_size=1), act=dict(hidden_act="gelu_new"), eps=dict(layer_norm_eps=1e-2), heads=dict(num_attention_heads=6), untied=dict(tie_word_embeddings=False), long=dict(_prompt=100))
    family("longformer", "LongformerForSequenceClassification", "LongformerConfig", dict(base, num_labels=3), long_classes=dict(_prompt=100), layer_classes=dict(attention_window=[4, 12, 6]))


def esm_families(family):
    esm = enc(mask_token_id=4, pad_token_id=1, vocab_size=33)
    heads(family, "esm", "Esm", "EsmConfig", esm, plain=dict(position_embedding_type="rotary"), drop=dict(position_embedding_type="rotary", token_dropout=True), last=dict(position_embedding_type="rotary", token_dropout=True, mask_token_id=32), absolute={}, before=dict(emb_layer_norm_before=True), drop_absolute=dict(token_dropout=True, emb_layer_norm_before=True),
          theta=dict(position_embedding_type="rotary", rope_theta=100.0), eps=dict(layer_norm_eps=1e-2), untied=dict(tie_word_embeddings=False), left_over=dict(position_embedding_type="rotary", _after=left_over))
    family("esm", "EsmModel", "EsmConfig", esm, drop_model=dict(position_embedding_type="rotary", token_dropout=True))


def left_over(out):
    """Adds the table of positions that published files of ESM-2 have and do not use."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(out / "model.safetensors")
    save_file({**tensors, "esm.embeddings.position_embeddings.weight": torch.ones(128, 48)}, out / "model.safetensors", metadata={"format": "pt"})


def classifier_families(family, llm):
    """Decoders that classify a text by its last token, as rerankers do."""
    for name, prefix in dict(llama="Llama", qwen2="Qwen2", qwen3="Qwen3", mistral="Mistral", gemma2="Gemma2", phi3="Phi3").items():
        family("classifier_" + name, prefix + "ForSequenceClassification", prefix + "Config", llm(), labels=dict(num_labels=3), score=dict(num_labels=1, tie_word_embeddings=True))
    family("classifier_gpt2", "GPT2ForSequenceClassification", "GPT2Config", dict(n_embd=48, n_layer=2, n_head=4, n_positions=128), labels=dict(num_labels=3))


def remote_families(family):
    base = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4)
    both = dict(geglu={}, reglu=dict(feed_forward_type="reglu"), act=dict(hidden_act="gelu_new"), heads=dict(num_attention_heads=6), eps=dict(layer_norm_eps=1e-2))
    family("jina_bert", "JinaBertForMaskedLM", "JinaBertConfig", base, **both, **{"code_" + k: dict(v, for_code=True) for k, v in both.items()})
    family("jina_bert", "JinaBertModel", "JinaBertConfig", base, model={}, code_model=dict(for_code=True), types=dict(type_vocab_size=3))
    family("neobert", "NeoBERTForMaskedLM", "NeoBERTConfig", base, plain={}, heads=dict(num_attention_heads=6), wide=dict(intermediate_size=100), eps=dict(norm_eps=1e-2), long=dict(_edit=dict(max_length=4096, hidden_act="SwiGLU")))
    moe = dict(n_embd=48, n_layer=4, n_head=4, n_inner=40, num_experts=4, pad_token_id=1, tie_word_embeddings=False)
    family("nomic_moe", "NomicMoEForMaskedLM", "NomicMoEConfig", moe, plain={}, one=dict(moe_top_k=1), three=dict(moe_top_k=3, num_experts=6), norm=dict(moe_normalize_expert_weights=True), types=dict(type_vocab_size=2), theta=dict(rotary_emb_base=100), eps=dict(layer_norm_epsilon=1e-2))
    family("nomic_moe", "NomicMoEModel", "NomicMoEConfig", moe, model={})
    family("neobert", "NeoBERT", "NeoBERTConfig", base, model={})


@torch.no_grad()
def record(v, model, seed, fmt, dtype):
    """What a reader of hidden states, of the masked-LM head and of the classifier gets."""
    rec = Record(family=v.family, variant=v.name, task="encoder", seed=seed, weights={"format": fmt, "dtype": dtype}, model_class=v.model)
    state = torch.Generator().manual_seed(seed)
    top = v.params.get("vocab_size", 96)
    ids = torch.randint(5, top, (v.prompt or LENGTH,), generator=state)
    if v.params.get("token_dropout"):
        ids[torch.tensor(MASKED)] = v.params["mask_token_id"]
    inputs = {"input_ids": ids[None]}
    rec.doc["inputs"]["prompt"] = {"ids": ids.tolist()}
    if (v.params.get("type_vocab_size", getattr(model.config, "type_vocab_size", 0)) or 0) > 1:
        types = torch.tensor([int(i > len(ids) // 3) for i in range(len(ids))])
        inputs["token_type_ids"] = types[None]
        rec.doc["inputs"]["prompt"]["token_type_ids"] = types.tolist()
    base = getattr(model, model.base_model_prefix, model) if hasattr(model, "base_model_prefix") else model
    if not v.family.startswith("classifier_"):
        seen_by_all = {"global_attention_mask": (torch.arange(len(ids)) == 0).int()[None]} if v.model == "LongformerForSequenceClassification" else {}
        rec.array("prompt.last_hidden", base(**inputs, **seen_by_all)[0][0])
    out = model(**inputs)
    if getattr(out, "pooler_output", None) is not None:
        rec.array("prompt.pooled", out.pooler_output)
    if "MaskedLM" in v.model:
        rec.doc["inputs"]["mlm"] = {**rec.doc["inputs"]["prompt"], "mask_positions": list(MASKED)}
        rec.array("mlm.logits", out.logits[0, list(MASKED)])
    if "SequenceClassification" in v.model:
        rec.array("classes.logits", model(ids[None]).logits)
    rec.doc["facts"] = {"deviation": float(base(**inputs)[0].std())}
    return rec, 1.0
