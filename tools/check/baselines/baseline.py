"""What baselines share. A baseline is a process that loads one model, then answers lines of JSON on its standard input, each a test,
with lines of JSON: {"test": "pp", "n": 512, "batch": 1} → {"speed": tokens per second}."""

import json
import sys


def token(seq: int, at: int, vocab: int) -> int:
    """The pseudo-random token at a place of a sequence, as in `BIN bench`."""
    return ((seq * 7919 + at + 1) * 0x9E3779B97F4A7C15 % (1 << 64) >> 33) % vocab


def serve(model) -> None:
    """Answers tests until the input ends."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        q = json.loads(line)
        run = {"pp": lambda: model.prefill(q["n"], q.get("batch", 1)),
               "tg": lambda: model.generate(q["n"], q.get("batch", 1), *([q["past"]] if "past" in q else [])),
               "enc": lambda: model.encode(q["lengths"], q.get("batch", 1))}[q["test"]]
        print(json.dumps({"speed": run()}), flush=True)
