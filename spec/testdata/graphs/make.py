"""Makes the folders beside it: tiny models whose topology no module value describes, for the model specs with a
graph that stand beside the folders, and what transformers computes from them in float32.

    python make.py [NAME…]        needs what ../families/make.py needs
"""

import os
import sys

import torch
import transformers as tf

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../families"))
from make import LENGTH, VOCAB, build, llm, rows, save  # noqa: E402


class Shared(torch.nn.Module):
    """Gives what another projection gave last."""

    def __init__(self, source):
        super().__init__()
        source.register_forward_hook(lambda module, args, out: setattr(self, "last", out))

    def forward(self, _):
        return self.last


def share_kv(model):
    """Layers 2k and 2k+1 have one KV, that of layer 2k: cross-layer attention (Brandon et al. 2024, arXiv 2405.12981)."""
    layers = model.model.layers
    for k in range(0, len(layers), 2):
        for name in ("k_proj", "v_proj"):
            setattr(layers[k + 1].self_attn, name, Shared(getattr(layers[k].self_attn, name)))


def reuse_kv(model):
    """The last four of six layers have the KV of the first two, two layers each."""
    layers = model.model.layers
    for k in range(2, 6):
        for name in ("k_proj", "v_proj"):
            setattr(layers[k].self_attn, name, Shared(getattr(layers[(k - 2) // 2].self_attn, name)))


MODELS = {  # name: (class, configuration class, parameters, what changes the model)
    # Ye et al. 2024, Differential Transformer, arXiv 2410.05258
    "diffllama": ("DiffLlamaForCausalLM", "DiffLlamaConfig", llm(hidden_size=32, num_attention_heads=8, num_key_value_heads=4, num_hidden_layers=3), None),
    "shared_kv": ("LlamaForCausalLM", "LlamaConfig", llm(num_hidden_layers=4), share_kv),
    "reused_kv": ("LlamaForCausalLM", "LlamaConfig", llm(num_hidden_layers=6, tie_word_embeddings=True), reuse_kv),
}


@torch.no_grad()
def make(name):
    *what, change = MODELS[name]
    model = build(*what)
    if change:
        change(model)
    ids = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(LENGTH)]
    logits = model(torch.tensor([ids]), use_cache=False).logits[0, -2:]
    text, greedy = list(ids), []
    for _ in range(6):
        greedy.append(int(model(torch.tensor([text]), use_cache=False).logits[0, -1].argmax()))
        text.append(greedy[-1])
    expected = {"attention": model.config._attn_implementation, "ids": ids, "logits": rows(logits), "greedy": greedy}
    save(name, model, expected, HERE)


tf.logging.set_verbosity_error()
for n in MODELS:
    if n in sys.argv[1:] or len(sys.argv) == 1:
        make(n)
