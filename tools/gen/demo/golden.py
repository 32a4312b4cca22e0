#!/usr/bin/env python3
"""Writes models/testdata/demo/expected.json: what transformers computes from the saved demo model in float32.

Four prompts (logits after the last token, 32 greedy tokens) and 25 strings for the tokenizer.
"""

import argparse
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "reference"))
import strings  # noqa: E402
from record import Record, greedy, last_logits, tokenizer_case  # noqa: E402

PROMPTS = [
    "Once upon a time", "The little fox", "What colour is the sky?", "One rainy morning Anna", "Long ago, near the sea, lived",
    "A small bear lived in a cosy den under an oak tree.", "What is the opposite of hot?", "On Monday the frog",
    "<|im_start|>user\nWhat do bees make?<|im_end|>\n<|im_start|>assistant\n",
]
COUNT, STEPS, MIN_MARGIN = 4, 32, 5e-3
CASES = 25


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("model", type=pathlib.Path)
    ap.add_argument("--out", type=pathlib.Path, required=True, help="the file to write")
    args = ap.parse_args()
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    tok = AutoTokenizer.from_pretrained(args.model)
    # prompts whose continuation has a near tie would test rounding, not the model
    made = [(p, ids, *greedy(model, ids, STEPS)) for p in PROMPTS for ids in [tok(p).input_ids]]
    made = [m for m in made if m[3] > MIN_MARGIN][:COUNT]
    if len(made) < COUNT:
        raise SystemExit(f"only {len(made)} of {len(PROMPTS)} continuations have no near tie; add prompts")
    texts, seqs, tokens, margins = map(list, zip(*made))
    rec = Record(family="llama", variant="demo", task="causal-lm", model_class="LlamaForCausalLM",
                 weights={"format": "safetensors", "dtype": "f16"})
    last = min(3, len(seqs[0]))
    rec.doc["inputs"] = {
        "prompt": {"text": texts[0], "ids": seqs[0], "logits_positions": list(range(len(seqs[0]) - last, len(seqs[0])))},
        "batch": {"texts": texts, "ids": seqs}}
    with torch.no_grad():
        rec.array("prompt.logits", model(torch.tensor([seqs[0]]), use_cache=False).logits[0, -last:])
    rec.array("batch.logits", torch.stack([last_logits(model, s) for s in seqs]))
    rec.doc["ids"] = {"greedy": tokens[0], "batch.greedy": tokens}
    rec.doc["facts"] = {"greedy_margins": margins, "greedy_texts": [tok.decode(t) for t in tokens]}
    words = strings.cases(150, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    rec.doc["tokenizer"] = {"size": len(tok), "special_tokens": {t: tok.convert_tokens_to_ids(t) for t in tok.all_special_tokens},
                            "cases": [tokenizer_case(tok, s) for s in words[:: len(words) // CASES][:CASES]]}
    rec.write(args.out)


if __name__ == "__main__":
    main()
