#!/usr/bin/env python3
"""Compares what transformers computes with eager attention and by its default path, for every model that is recorded.

    python attention.py [--write]

Prints the page docs/benchmarks/attention.md, or writes it: the families of spec/testdata/families, then those variants of
breadth.py that differ.
Exits 1 where two paths differ and nothing says why, or where a reason is given and they do not.
"""

import argparse
import math
import pathlib
import sys

import torch
import transformers as tf

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "spec/testdata/families"))

import breadth  # noqa: E402
import make  # noqa: E402
from breadth_variants import VARIANTS  # noqa: E402

PAGE = ROOT / "docs/benchmarks/attention.md"
LIMIT = 1e-4  # of the largest value; float32's rounding stays two orders below it
HEAD = """# Reference outputs: eager attention and transformers' default

This page shows for which models the two attention implementations of transformers differ.

`tools/gen/reference/attention.py --write` generates it with transformers {version} and torch {torch} in float32. The default of transformers is `sdpa` (PyTorch's
scaled_dot_product_attention) if a model supports it, and `eager` otherwise. Reference outputs are recorded with the default.
[Decision 070](../decisions/070-reference-attention.md) gives the reasons.

"Difference" is the maximum difference between eager attention and the default over all recorded values. "Largest" is the largest absolute value.
"""
FAMILIES = """
## Models of spec/testdata/families

| model | default | difference | largest | what differs |
|---|---|---|---|---|
"""
BREADTH = """
## Variants of breadth.py

These of the {count} variants differ between the two implementations by more than {limit:g} of the largest logit:

| variant | default | difference | largest | what differs |
|---|---|---|---|---|
"""


def values(outputs: dict) -> list[float]:
    """All recorded numbers of a model's outputs, in order."""
    return [x for key, rows in outputs.items() if rows and isinstance(rows, list) and isinstance(rows[0], list) and key != "types" for row in rows for x in row]


def row(name: str, default: str, a: list[float], b: list[float], why: str) -> tuple[str, bool, bool]:
    """The table's row, whether the two lists differ, and whether that agrees with what is said about them."""
    difference, largest = max(abs(x - y) for x, y in zip(a, b, strict=True)), max(map(abs, a))
    differs = difference > LIMIT * largest
    return f"| {name} | {default} | {difference:.1e} | {largest:.2f} | {why} |\n", differs, differs == bool(why)


def families(names) -> tuple[list[str], list[str]]:
    lines, wrong = [], []
    for name in sorted(names):
        default = make.run(name)[1]
        if default["attention"] == "float64":  # not of transformers
            continue
        try:
            eager = values(make.run(name, "eager")[1])
        except RuntimeError:  # of shapes
            eager = [math.inf for _ in values(default)]
        line, _, agrees = row(name, default["attention"], values(default), eager, make.DIFFERS.get(name, ""))
        lines.append(line)
        if not agrees:
            wrong.append(line)
    return lines, wrong


@torch.no_grad()
def logits(v, attention: str | None) -> tuple[str, list[float]]:
    model = breadth.new_model(v, 1, attention)
    _, ids = breadth.prompt(v, torch.Generator().manual_seed(1))
    return model.config._attn_implementation, model(torch.tensor([ids]), use_cache=False).logits[0].flatten().tolist()


def variants() -> tuple[str, list[str]]:
    text, wrong = BREADTH.format(count=sum(not v.encoder for v in VARIANTS), limit=LIMIT), []
    for v in VARIANTS:
        if v.encoder:
            continue
        (default, a), (_, b) = logits(v, None), logits(v, "eager")
        line, differs, agrees = row(v.key, default, a, b, v.note if "eager" in v.note else "")
        if differs:
            text += line
        if not agrees:
            wrong.append(line)
    return text, wrong


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--write", action="store_true")
    args = ap.parse_args()
    torch.set_num_threads(1)
    tf.logging.set_verbosity_error()
    tf.utils.logging.disable_progress_bar()
    a, wrong = families(make.NAMES)
    b, more = variants()
    page = HEAD.format(version=tf.__version__, torch=torch.__version__.split("+")[0]) + FAMILIES + "".join(a) + b
    if args.write:
        PAGE.write_text(page, encoding="utf-8")
    else:
        print(page, end="")
    for line in wrong + more:
        print("not as make.py or breadth_variants.py says:", line, end="", file=sys.stderr)
    return 1 if wrong + more else 0


if __name__ == "__main__":
    sys.exit(main())
