"""Encoders of the last years for make.py, in the same form as its tables. They need transformers 5.24; those that it does
not have are in tools/gen/reference/remote_encoders.py, and run in float64."""

import pathlib
import sys

import torch
import transformers as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tools/gen/reference"))
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


def published(name):
    """A class of transformers, or of remote_encoders."""
    return getattr(tf, name, None) or getattr(remote_encoders, name)


@torch.no_grad()
def outputs(model, results):
    """The last hidden states and the heads' results."""
    remote = not hasattr(tf, type(model).__name__)
    model = model.double() if remote else model
    ids = torch.tensor([[(7 * i * i + 3 * i + 5) % (VOCAB - 5) + 5 for i in range(LENGTH)]])
    kw = {}
    if (getattr(model.config, "type_vocab_size", 0) or 0) > 1:
        kw["token_type_ids"] = torch.tensor([[int(i > 9) for i in range(LENGTH)]])
    base = getattr(model, model.base_model_prefix, model)
    expected = {"ids": ids[0].tolist(), "wanted": [0], "hidden": rows(base(ids, **kw)[0][0, -2:])}
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
