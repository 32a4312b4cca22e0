"""Encoders of the last years for make.py, in the same form as its tables. Those that transformers
does not have are in tools/gen/reference/remote_encoders.py, and run in float64."""

import json
import pathlib
import sys

import safetensors.torch
import torch
import transformers as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools/gen/reference"))
import remote_encoders  # noqa: E402

LENGTH, VOCAB = 24, 40
LOGITS = dict(logits="logits")


def enc(**kw):
    return dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=64, **kw)


REMOTE = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2)

MODELS = {
    "nomic_bert": ("NomicBertForMaskedLM", "NomicBertConfig", enc(head_dim=12), LOGITS),
    "gte": ("GteForMaskedLM", "GteConfig", enc(), LOGITS),
    "jina_embeddings_v3": ("JinaEmbeddingsV3ForMaskedLM", "JinaEmbeddingsV3Config", enc(), LOGITS),
    "eurobert": ("EuroBertForMaskedLM", "EuroBertConfig", enc(tie_word_embeddings=True, attention_bias=True, mask_token_id=4), LOGITS),
    "eurobert_late": ("EuroBertForSequenceClassification", "EuroBertConfig", enc(num_key_value_heads=1, num_labels=3, mask_token_id=4), dict(classes="logits")),
    "jina_bert": ("JinaBertForMaskedLM", "JinaBertConfig", REMOTE, LOGITS),
    "jina_bert_code": ("JinaBertForMaskedLM", "JinaBertConfig", dict(REMOTE, for_code=True, feed_forward_type="reglu"), LOGITS),
    "neobert": ("NeoBERTForMaskedLM", "NeoBERTConfig", REMOTE, LOGITS),
}


DEBERTA = dict(relative_attention=True, pos_att_type=["c2p", "p2c"], position_biased_input=False, type_vocab_size=0, pad_token_id=0)
MODELS |= {
    "embeddinggemma": ("Gemma3TextModel", "Gemma3TextConfig", enc(num_key_value_heads=1, head_dim=12, sliding_window=6, query_pre_attn_scalar=10, use_bidirectional_attention=True, layer_types=["sliding_attention", "full_attention"]), {}),
    "deberta_v2": ("DebertaV2ForSequenceClassification", "DebertaV2Config", enc(**DEBERTA, position_buckets=4, max_relative_positions=20, norm_rel_ebd="layer_norm", share_att_key=True, num_labels=3), dict(classes="logits")),
    "deberta_v2_own": ("DebertaV2ForMaskedLM", "DebertaV2Config", enc(**DEBERTA, max_relative_positions=8, embedding_size=12, legacy=True), LOGITS),
    "deberta_v2_conv": ("DebertaV2ForSequenceClassification", "DebertaV2Config", enc(**DEBERTA, position_buckets=4, max_relative_positions=20, norm_rel_ebd="layer_norm", share_att_key=True, conv_kernel_size=3, conv_act="gelu", num_labels=3), dict(classes="logits")),
    "deberta_v2_groups": ("DebertaV2ForMaskedLM", "DebertaV2Config", enc(**DEBERTA, max_relative_positions=8, embedding_size=12, legacy=True, conv_kernel_size=5, conv_groups=2), LOGITS),
    "deberta": ("DebertaForMaskedLM", "DebertaConfig", enc(**{**DEBERTA, "pos_att_type": ["c2p", "p2c", "p2p"]}), LOGITS),
    "longformer": ("LongformerForMaskedLM", "LongformerConfig", enc(pad_token_id=1, attention_window=[4, 8]), LOGITS),
    "longformer_classes": ("LongformerForSequenceClassification", "LongformerConfig", enc(pad_token_id=1, type_vocab_size=1, attention_window=6, num_labels=3), dict(classes="logits")),
    "nomic_moe": ("NomicMoEForMaskedLM", "NomicMoEConfig", dict(n_embd=16, n_layer=2, n_head=2, n_inner=24, num_experts=3, pad_token_id=1, tie_word_embeddings=False), LOGITS),
    "gte_ntk": ("GteForMaskedLM", "GteConfig", enc(rope_parameters=dict(rope_type="linear", rope_theta=640.0, factor=4 ** (2 / 8))), LOGITS),
    "esm": ("EsmForMaskedLM", "EsmConfig", enc(position_embedding_type="rotary", token_dropout=True, mask_token_id=4, pad_token_id=1), LOGITS),
    "esm_absolute": ("EsmForMaskedLM", "EsmConfig", enc(emb_layer_norm_before=True, mask_token_id=4, pad_token_id=1), LOGITS),
    "sentence_bert": ("BertModel", "BertConfig", enc(type_vocab_size=1), dict(pooled="pooler_output")),
    "sentence_qwen3": ("Qwen3Model", "Qwen3Config", enc(num_key_value_heads=1, head_dim=12, tie_word_embeddings=True), {}),
    "classifier_qwen3": ("Qwen3ForSequenceClassification", "Qwen3Config", enc(num_key_value_heads=1, head_dim=12, num_labels=3), dict(classes="logits")),
}

# What sentence-transformers runs behind a model: its pooling and its Dense modules (outputs, bias, activation).
SENTENCE = {
    "embeddinggemma": ("mean_tokens", [(24, False, "linear.Identity"), (16, False, "linear.Identity")]),
    "sentence_bert": ("cls_token", [(12, True, "activation.Tanh")]),
    "sentence_qwen3": ("lasttoken", [(20, True, "activation.Tanh"), (10, False, "linear.Identity")]),
}


def published_config(name, config):
    """GTE's scaling as its published configuration says it: a base of 4 · 160, and the frequencies divided by 4^(2/8)."""
    if name == "gte_ntk":
        config.update(model_type="new", rope_theta=160.0, rope_scaling=dict(type="ntk", factor=4.0))
        del config["rope_parameters"]


def dense(name, width):
    """The matrices and biases of the Dense modules."""
    for i, (out, bias, act) in enumerate(SENTENCE[name][1]):
        g = torch.Generator().manual_seed(i)
        yield i + 2, act, {"linear.weight": (torch.randn(out, width, generator=g) * 1.5 / width**0.5).half(), **({"linear.bias": (torch.randn(out, generator=g) * 0.3).half()} if bias else {})}
        width = out


def write_dense(name, out):
    """The files of sentence-transformers, if the model has any."""
    if name not in SENTENCE:
        return
    out, pooling = pathlib.Path(out), SENTENCE[name][0]
    width = json.loads((out / "config.json").read_text())["hidden_size"]

    def put(path, value):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value, indent=1) + "\n")

    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    put(out / "1_Pooling/config.json", {"word_embedding_dimension": width, "pooling_mode_" + pooling: True})
    for i, act, tensors in dense(name, width):
        modules.append((f"{i}_Dense", "Dense"))
        m = tensors["linear.weight"]
        put(out / f"{i}_Dense/config.json", {"in_features": m.shape[1], "out_features": m.shape[0], "bias": len(tensors) > 1, "activation_function": "torch.nn.modules." + act})
        safetensors.torch.save_file(tensors, out / f"{i}_Dense/model.safetensors")
    modules.append((f"{len(modules)}_Normalize", "Normalize"))
    put(out / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind} for i, (path, kind) in enumerate(modules)])


@torch.no_grad()
def embedding(name, model):
    """What the pooling and the Dense modules make of a text, without the length of 1."""
    if name not in SENTENCE:
        return {}
    x = model(tokens()).last_hidden_state[0]
    x = {"mean_tokens": x.mean(0), "cls_token": x[0], "lasttoken": x[-1]}[SENTENCE[name][0]]
    for _, act, tensors in dense(name, len(x)):
        x = tensors["linear.weight"].float() @ x + (tensors["linear.bias"].float() if len(tensors) > 1 else 0)
        x = x.tanh() if act.endswith("Tanh") else x
    return {"embedding": rows([x])}


def tokens():
    return torch.tensor([[(7 * i * i + 3 * i + 5) % (VOCAB - 5) + 5 for i in range(LENGTH)]])


def published(name):
    """A class of transformers, or of remote_encoders; a function itself."""
    return name if callable(name) else getattr(tf, name, None) or getattr(remote_encoders, name)


@torch.no_grad()
def outputs(model, results):
    """The last hidden states and the heads' results."""
    remote = not hasattr(tf, type(model).__name__)
    model = model.double() if remote else model
    decoder = hasattr(model, "score") or type(model).__name__ == "Qwen3Model"
    ids = tokens()
    if getattr(model.config, "token_dropout", False):
        ids[0, [3, 11]] = model.config.mask_token_id
    kw = {}
    if (getattr(model.config, "type_vocab_size", 0) or 0) > 1:
        kw["token_type_ids"] = torch.tensor([[int(i > 9) for i in range(LENGTH)]])
    base = getattr(model, model.base_model_prefix, model)
    expected = {"ids": ids[0].tolist(), "wanted": [0]}
    if not decoder:
        seen_by_all = {"global_attention_mask": (torch.arange(LENGTH) == 0).int()[None]} if type(model).__name__ == "LongformerForSequenceClassification" else {}
        expected["hidden"] = rows(base(ids, **kw, **seen_by_all)[0][0, -2:])
    if kw:
        expected["types"] = kw["token_type_ids"][0].tolist()
    out = model(ids, **kw)
    for ours, theirs in results.items():
        x = getattr(out, theirs)
        if x.ndim == 3:
            expected["wanted"] = [3, 20]
            x = x[0, expected["wanted"]]
        expected[ours] = rows(x)
    if remote:
        model.float()
        expected["attention"] = "float64"
    return expected


def rows(x):
    return [[round(float(v), 6) for v in row] for row in x]
