#!/usr/bin/env python3
"""What transformers computes from SmolLM2-135M-Instruct's GGUF weights in float32: the reference for iflowc.

Writes DIR/expected.json: last-position logits of 8 prompts, 64 greedy tokens of 5, token ids of 200 strings.
"""

import argparse
import pathlib

import torch

import gguf_llama
import strings
from record import Record, greedy, last_logits, tokenizer_case

PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n",
    "Once upon a time, in a village near the sea, there lived an old clockmaker who",
    "The three primary colours are red,",
    "1, 2, 3, 5, 8, 13, 21,",
    "Water boils at 100 degrees Celsius because the",
    "In 1987 the town had 12,450 people, three bakeries, two schools and one very old clock tower. Every morning the "
    "baker opened his door at five, and the smell of bread went down the street to the harbour, where the",
]
LAST, STEPS, GENERATED, STRINGS = 3, 64, 5, 200
MIN_MARGIN = 2e-3  # a continuation whose best two logits come closer is no fair test


def order(model, tok) -> tuple[list, list, list]:
    """Texts, their ids and (continuation, margin), those without a near tie first."""
    all = [(text, ids, greedy(model, ids, STEPS)) for text in PROMPTS for ids in [tok(text).input_ids]]
    all.sort(key=lambda x: x[2][1] <= MIN_MARGIN)
    if all[GENERATED - 1][2][1] <= MIN_MARGIN:
        raise SystemExit(f"fewer than {GENERATED} continuations have no near tie; change PROMPTS")
    return tuple(map(list, zip(*all)))


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("gguf")
    ap.add_argument("--out", type=pathlib.Path, required=True)
    ap.add_argument("--threads", type=int, default=2)
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    model, tok = gguf_llama.load(args.gguf)
    rec = Record(family="llama", variant="smollm2-135m-instruct", task="causal-lm", model_class="LlamaForCausalLM",
                 weights={"format": "gguf", "file": pathlib.Path(args.gguf).name})
    texts, seqs, made = order(model, tok)
    rec.doc["inputs"] = {
        "prompt": {"text": texts[0], "ids": seqs[0], "logits_positions": list(range(len(seqs[0]) - LAST, len(seqs[0])))},
        "batch": {"texts": texts, "ids": seqs}}
    with torch.no_grad():
        rec.array("prompt.logits", model(torch.tensor([seqs[0]]), use_cache=False).logits[0, -LAST:])
    rec.array("batch.logits", torch.stack([last_logits(model, s) for s in seqs]))
    rec.doc["ids"] = {"greedy": made[0][0], "batch.greedy": [ids for ids, _ in made[:GENERATED]]}
    rec.doc["facts"] = {"greedy_margins": [m for _, m in made], "greedy_texts": [tok.decode(t) for t, _ in made]}
    rec.doc["tokenizer"] = {"size": len(tok), "special_tokens": {t: tok.convert_tokens_to_ids(t) for t in tok.all_special_tokens},
                            "cases": [tokenizer_case(tok, s) for s in strings.cases(STRINGS, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])]}
    rec.write(args.out / "expected.json")
    for text, (ids, margin) in zip(texts, made):
        print(f"margin {margin:.4f}: {text!r} -> {tok.decode(ids)!r}")


if __name__ == "__main__":
    main()
