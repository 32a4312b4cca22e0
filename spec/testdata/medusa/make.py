"""Makes the Medusa heads beside it, for the tiny model ../families/llama, and what torch computes of them in float32.

    python make.py        needs tools/gen/reference/requirements.txt

Keys are those of the reference's checkpoints: {head}.{layer}.linear.weight and .bias, {head}.{layers}.weight. The numbers
come from a seed and are rounded to f16.
"""

import json
import os

import torch
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = os.path.join(HERE, "..", "families", "llama")


def head(g, hidden, layers, vocab):
    half = lambda *shape, scale: (torch.randn(*shape, generator=g) * scale).half()
    out = {}
    for j in range(layers):
        out[f"{j}.linear.weight"], out[f"{j}.linear.bias"] = half(hidden, hidden, scale=0.4), half(hidden, scale=0.2)
    if vocab:
        out[f"{layers}.weight"] = half(vocab, hidden, scale=0.3)
    return out


def square(g, heads, hidden, layers):
    return {f"{i}.{layers}.weight": (torch.randn(hidden, hidden, generator=g) * 0.3).half() for i in range(heads)}


def checkpoint(seed, heads, hidden, layers, vocab):
    g = torch.Generator().manual_seed(seed)
    return {f"{i}.{k}": v for i in range(heads) for k, v in head(g, hidden, layers, vocab).items()}


def logits(heads, i, layers, hidden, shared):
    x = hidden
    for j in range(layers):
        x = x + torch.nn.functional.silu(x @ heads[f"{i}.{j}.linear.weight"].float().T + heads[f"{i}.{j}.linear.bias"].float())
    last = heads.get(f"{i}.{layers}.weight")
    if last is not None:
        x = x @ last.float().T
    return x if x.shape[-1] == shared.shape[0] else x @ shared.float().T


def chain(seed, width, tokens, shared):
    """A chained head and the rows of the model's head that it chooses from."""
    g = torch.Generator().manual_seed(seed)
    half = lambda *shape, scale: (torch.randn(*shape, generator=g) * scale).half()
    return {"0.in.weight": half(width, 2 * width, scale=0.3), "0.in.bias": half(width, scale=0.2),
            "0.0.linear.weight": half(width, width, scale=0.4), "0.0.linear.bias": half(width, scale=0.2),
            "0.1.weight": half(width, width, scale=0.3), "head.weight": shared[tokens].half()}


def chained(heads, z, e):
    x = torch.cat([z, e], -1) @ heads["0.in.weight"].float().T + heads["0.in.bias"].float()
    x = x + torch.nn.functional.silu(x @ heads["0.0.linear.weight"].float().T + heads["0.0.linear.bias"].float())
    z = x @ heads["0.1.weight"].float().T
    return z, z @ heads["head.weight"].float().T


def main():
    model = transformers.AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32, attn_implementation="eager").eval()
    ids = json.load(open(os.path.join(BASE, "expected.json")))["ids"]
    with torch.no_grad():
        hidden = model.model(torch.tensor([ids])).last_hidden_state[0]
    shared, width = model.lm_head.weight, hidden.shape[1]
    own = checkpoint(1, 2, width, 1, shared.shape[0])
    torch.save(own, os.path.join(HERE, "own.pt"))
    deep = checkpoint(2, 3, width, 2, 0)
    save_file(deep, os.path.join(HERE, "shared.safetensors"))
    both = {**checkpoint(3, 2, width, 1, 0), **square(torch.Generator().manual_seed(4), 2, width, 1)}
    save_file(both, os.path.join(HERE, "square.safetensors"))
    expected = {"ids": ids}
    tokens = torch.randperm(shared.shape[0], generator=torch.Generator().manual_seed(6))[:32].tolist()
    linked = chain(5, width, tokens, shared)
    os.makedirs(os.path.join(HERE, "chain"), exist_ok=True)
    save_file(linked, os.path.join(HERE, "chain", "medusa_lm_head.safetensors"))
    with open(os.path.join(HERE, "chain", "config.json"), "w") as f:
        json.dump({"medusa_tokens": tokens}, f)
        f.write("\n")
    with torch.no_grad():
        expected["own"] = [logits(own, i, 1, hidden, shared)[-2:].tolist() for i in range(2)]
        expected["shared"] = [logits(deep, i, 2, hidden, shared)[-2:].tolist() for i in range(3)]
        expected["square"] = [logits(both, i, 1, hidden, shared)[-2:].tolist() for i in range(2)]
        z, embed = hidden[-1], model.model.embed_tokens.weight
        expected["chain"] = []
        for token in (7, 11):  # each behind the one before
            z, row = chained(linked, z, embed[token])
            expected["chain"].append(torch.cat([row, z]).tolist())
    round4 = lambda v: [round4(x) for x in v] if isinstance(v, list) else round(v, 6) if isinstance(v, float) else v
    with open(os.path.join(HERE, "expected.json"), "w") as f:
        json.dump(round4(expected), f)
        f.write("\n")


main()
