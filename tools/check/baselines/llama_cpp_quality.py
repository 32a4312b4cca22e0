"""Scores a GGUF file against another of the same model with llama.cpp, by the definitions of `BIN perplexity --against`.

    python llama_cpp_quality.py FILE REFERENCE WINDOWS THREADS

WINDOWS is a JSON file: windows of equally many token ids. The second half of each is scored. Prints one JSON document.
"""

import ctypes
import json
import math
import sys

import llama_cpp as ll
import numpy as np

from llama_cpp_baseline import QUIET, Model


def log_probabilities(model: Model, window: list, vocab: int) -> np.ndarray:
    """Of the tokens behind each of the second half's, but the last: [len(window)/2 − 1, vocab]."""
    model.open(len(window), 1)
    half = len(window) // 2
    model.decode([(t, i, 0, int(half <= i < len(window) - 1)) for i, t in enumerate(window)])
    rows = np.ctypeslib.as_array(ll.llama_get_logits(model.context), (len(window) - half - 1, vocab)).astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))


def interval(sums: list, n: int, f=lambda x: x) -> dict:
    """The mean and its 95 % interval, from the sums of windows with n tokens each."""
    windows = len(sums)
    mean = sum(sums) / (windows * n)
    square = sum((s - mean * n) ** 2 for s in sums)
    half = 1.96 * math.sqrt(square * windows / max(1, windows - 1)) / (windows * n)
    return {"mean": f(mean), "low": f(mean - half), "high": f(mean + half)}


def main() -> None:
    file, reference, windows, threads = sys.argv[1:5]
    ll.llama_log_set(QUIET, ctypes.c_void_p(0))
    ll.llama_backend_init()
    with open(windows, encoding="utf-8") as f:
        windows = json.load(f)
    own, ref = (Model(path, int(threads), len(windows[0])) for path in (file, reference))
    loss, kl, same, longer = [], [], [], []
    for i, w in enumerate(windows):
        p, q = log_probabilities(ref, w, own.vocab), log_probabilities(own, w, own.vocab)
        at = np.arange(len(p)), np.array(w[len(w) // 2 + 1 :])
        loss.append(-q[at].sum())
        longer.append((p[at] - q[at]).sum())
        kl.append((np.exp(p) * (p - q)).sum())
        same.append((p.argmax(axis=1) == q.argmax(axis=1)).sum())
        print(f"window {i + 1} of {len(windows)}", file=sys.stderr, end="\r", flush=True)
    n = len(windows[0]) - len(windows[0]) // 2 - 1
    size, parameters = ll.llama_model_size(own.model), ll.llama_model_n_params(own.model)
    print(json.dumps({
        "perplexity": math.exp(sum(loss) / (n * len(windows))), "tokens": n * len(windows), "bytes": size, "parameters": parameters,
        "against": {"kl": interval(kl, n), "same_top": interval(same, n), "perplexity_ratio": interval(longer, n, math.exp)},
    }))


if __name__ == "__main__":
    main()
