#!/usr/bin/env python3
"""Perplexity of a model on a text file by transformers: exp of the mean negative log-likelihood over windows.

The rule of `perplexity` in iflowc's binaries: the text is tokenized whole, windows of `--context` tokens start every
`--stride` tokens, each window is fed alone, and the tokens that no earlier window scored are scored, except the
first of a window, which nothing predicts. Where the tokenizer adds a bos token, it stands in front of every window
(and counts as one of its tokens), and the first token is scored as well.
"""

import argparse
import itertools
import json
import math
import pathlib

import torch

import gguf_llama


def windows(count: int, room: int, stride: int, skip: int):
    """(begin, end, first scored token) of each window over `count` tokens; `skip` tokens of each have no prediction."""
    done = 0
    for begin in range(0, count, stride):
        end = min(begin + room, count)
        yield begin, end, max(done, begin + skip)
        done = end
        if end == count:
            return


@torch.no_grad()
def losses(model, ids: list[int], args, bos: int | None) -> list[float]:
    """Negative log-likelihood of every scored token."""
    front = [] if bos is None else [bos]
    room = args.context - len(front)
    spans = windows(len(ids), room, min(args.stride, room), 1 - len(front))
    out = []
    for begin, end, first in itertools.islice(spans, args.chunks):
        x = front + ids[begin:end]
        logp = model(torch.tensor([x]), use_cache=False).logits[0].log_softmax(-1)
        before = len(front) - begin - 1  # row of the logits that predict token i is i + before
        out += [-float(logp[i + before, ids[i]]) for i in range(first, end)]
    return out


def load(path: str):
    """Model and tokenizer of a GGUF file or a Hugging Face folder."""
    if path.endswith(".gguf"):
        return gguf_llama.load(path)
    from transformers import AutoModelForCausalLM, AutoTokenizer
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval(), AutoTokenizer.from_pretrained(path)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("model", help="a .gguf file or a Hugging Face folder")
    ap.add_argument("text", type=pathlib.Path)
    ap.add_argument("--context", type=int, default=512)
    ap.add_argument("--stride", type=int, default=512)
    ap.add_argument("--chunks", type=int)
    ap.add_argument("--bos", choices=["auto", "always", "never"], default="auto", help="auto: where the tokenizer adds one")
    ap.add_argument("--threads", type=int, default=2)
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    model, tok = load(args.model)
    ids = tok(args.text.read_text(encoding="utf-8"), add_special_tokens=False).input_ids
    adds = tok("a").input_ids[:1] == [tok.bos_token_id]
    bos = tok.bos_token_id if args.bos == "always" or args.bos == "auto" and adds else None
    nll = losses(model, ids, args, bos)
    mean = sum(nll) / len(nll)
    spread = math.sqrt(sum((x - mean) ** 2 for x in nll) / (len(nll) - 1) / len(nll))
    print(json.dumps({"perplexity": math.exp(mean), "stderr": math.exp(mean) * spread, "tokens": len(nll), "nll": mean}))


if __name__ == "__main__":
    main()
