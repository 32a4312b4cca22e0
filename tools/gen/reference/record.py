"""Writes expected.json: inputs, token ids that must match, arrays (float32, base64, little-endian), tokenizer cases."""

import base64
import json
import pathlib
import re

import numpy as np
import torch


class Record:
    """Collects what a causal language model computes, in the layout the conformance checks read.

    `prompt` and `batch` are the two inputs: of the prompt the logits of the last positions and a greedy
    continuation are kept, of every sequence of the batch the logits of the last position and one, too.
    """

    def __init__(self, **meta):
        self.doc = {"format_version": 1, **meta, "inputs": {}, "ids": {}, "arrays": {}, "facts": {}, "tokenizer": {}}

    def array(self, name: str, value: torch.Tensor) -> None:
        a = np.ascontiguousarray(value.detach().float().numpy())
        self.doc["arrays"][name] = {
            "shape": list(a.shape), "absmax": float(np.abs(a).max()), "head": [float(x) for x in a.reshape(-1)[:4]],
            "f32_b64": base64.b64encode(a.astype("<f4").tobytes()).decode()}

    def write(self, path: pathlib.Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.doc, ensure_ascii=False, indent=1, allow_nan=False)
        # one line per list of numbers; a string holds no raw newline, so none is touched
        text = re.sub(r"\[\n([-+.\de,\s]+)\]", lambda m: "[" + ", ".join(m.group(1).replace(",", " ").split()) + "]", text)
        path.write_text(text + "\n", encoding="utf-8")


@torch.no_grad()
def greedy(model, ids: list[int], steps: int, use_cache: bool = True) -> tuple[list[int], float]:
    """`steps` greedy tokens, not stopping at an end token, and the least gap between the best two logits. A model without
    a cache reads everything again for each token."""
    out, margin, cache, x = [], float("inf"), None, torch.tensor([ids])
    for _ in range(steps):
        y = model(x, **({"cache": cache} if cache is not None else {}), use_cache=use_cache)
        cache, best = y.get("past_key_values", y.get("cache")), y.logits[0, -1].topk(2)
        margin = min(margin, float(best.values[0] - best.values[1]))
        out.append(int(best.indices[0]))
        x = torch.tensor([ids + out if cache is None else out[-1:]])
    return out, margin


@torch.no_grad()
def last_logits(model, ids: list[int]) -> torch.Tensor:
    return model(torch.tensor([ids]), use_cache=False).logits[0, -1]


def tokenizer_case(tok, text: str) -> dict:
    """One string: ids with and without special tokens added, and what they decode to."""
    ids = tok(text).input_ids
    decode = lambda skip: tok.decode(ids, skip_special_tokens=skip, clean_up_tokenization_spaces=False)
    return {"text": text, "ids": ids, "ids_plain": tok(text, add_special_tokens=False).input_ids,
            "decoded": decode(False), "decoded_skip_special": decode(True)}
