#!/usr/bin/env python3
"""What transformers computes from a published model's weights in float32: the reference of script/compare-reference.

    real.py NAME FILE --out PATH [--lora ADAPTER]

NAME is one of MODELS, FILE what script/fetch-* prints, ADAPTER a folder of PEFT. Writes logits after the last token of each prompt (of the columns in
COLUMNS and the largest ones), greedy tokens of some, and the ids of strings.
"""

import argparse
import pathlib
from dataclasses import dataclass
from typing import Callable

import torch
import transformers as tf

import gguf_llama
import strings
from record import Record, greedy, last_logits, tokenizer_case

STEPS, GENERATED, STRINGS = 64, 5, 120
LARGEST, COLUMNS = 32, 64
MIN_MARGIN = 2e-3  # a continuation whose best two logits come closer is no fair test

PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "Once upon a time, in a village near the sea, there lived an old clockmaker who",
    "The three primary colors are red,",
    "1, 2, 3, 5, 8, 13, 21,",
    "Water boils at 100 degrees Celsius because the",
    "In 1987 the town had 12,450 people, three bakeries, two schools and one very old clock tower. Every morning the "
    "baker opened his door at five, and the smell of bread went down the street to the harbour, where the",
]
# Longer than a window of 512 tokens; what it asks for stands before the window of the last token.
LONG = "The password of the harbour is 'marble'. " + " ".join(
    f"On day {i} the ship number {i * i} left the harbour with {3 * i + 1} barrels of oil." for i in range(1, 40)) + " The password of the harbour is '"


def gguf_gemma(path: str):
    """The model and its tokenizer by transformers' own reader of GGUF."""
    file = pathlib.Path(path)
    model = tf.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    return model.eval(), tf.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)


@dataclass(frozen=True)
class Model:
    family: str
    load: Callable
    prompts: list[str]
    special: list[str]  # tokens that strings may hold


MODELS = {
    "smollm2-135m-instruct": Model(
        "llama", gguf_llama.load,
        PROMPTS + ["<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n"],
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
    "gemma-3-270m": Model("gemma3_text", gguf_gemma, [LONG] + PROMPTS, ["<eos>", "<start_of_turn>", "<end_of_turn>"]),
}


def order(prompts: list[str], model, tok) -> tuple[list, list, list]:
    """Texts, their ids and (continuation, margin), those without a near tie first."""
    made = [(text, ids, greedy(model, ids, STEPS)) for text in prompts for ids in [tok(text).input_ids]]
    made.sort(key=lambda x: x[2][1] <= MIN_MARGIN)
    if made[GENERATED - 1][2][1] <= MIN_MARGIN:
        raise SystemExit(f"fewer than {GENERATED} continuations have no near tie; change PROMPTS")
    return tuple(map(list, zip(*made)))


def columns(logits: torch.Tensor) -> list[int]:
    """Ids whose logits are kept: the largest, and some spread over the vocabulary."""
    spread = [i * (len(logits) - 1) // (COLUMNS - 1) for i in range(COLUMNS)]
    return sorted(set(logits.topk(LARGEST).indices.tolist() + spread))


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("name", choices=MODELS)
    ap.add_argument("file")
    ap.add_argument("--out", type=pathlib.Path, required=True)
    ap.add_argument("--lora", help="an adapter for the model; the tokenizer is not recorded then")
    ap.add_argument("--threads", type=int, default=2)
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    spec = MODELS[args.name]
    model, tok = spec.load(args.file)
    if args.lora:
        import peft
        model = peft.PeftModel.from_pretrained(model, args.lora).eval()
    rec = Record(family=spec.family, variant=args.name, task="causal-lm", model_class=type(model).__name__,
                 weights={"format": "gguf", "file": pathlib.Path(args.file).name},
                 versions={"torch": torch.__version__.split("+")[0], "transformers": tf.__version__})
    texts, seqs, made = order(spec.prompts, model, tok)
    last = [last_logits(model, s) for s in seqs]
    kept = [columns(x) for x in last]
    rec.doc["inputs"] = {"batch": {"texts": texts, "ids": seqs, "columns": kept}}
    rec.array("batch.logits", torch.cat([x[c] for x, c in zip(last, kept)]))
    rec.doc["ids"] = {"batch.greedy": [ids for ids, _ in made[:GENERATED]]}
    rec.doc["facts"] = {"greedy_margins": [m for _, m in made], "greedy_texts": [tok.decode(t) for t, _ in made]}
    if not args.lora:
        rec.doc["tokenizer"] = {"cases": [tokenizer_case(tok, s) for s in strings.cases(STRINGS, spec.special)]}
    rec.write(args.out)
    for text, (ids, margin) in zip(texts, made):
        print(f"margin {margin:.4f}: {text[-60:]!r} -> {tok.decode(ids)!r}")


if __name__ == "__main__":
    main()
