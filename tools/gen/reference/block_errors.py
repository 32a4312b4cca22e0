#!/usr/bin/env python3
"""Root mean square errors of gguf-py's block encoders on values that ir/tensor's tests generate too.

Writes ir/tensor/testdata/ggml_errors.json. The values are sums of uniform numbers from a linear congruential generator, exact
in float32: nearly Gaussian, and one in fifty eight times as large in the second set.
"""

import json
import pathlib
import sys

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import quants

COUNT = 1 << 14


def values(outliers: bool) -> np.ndarray:
    """COUNT numbers: (sum of eight 12-bit numbers - 16384) * 2^-17, the first of every 50 times 8 where outliers are wanted."""
    state, out = 12345, np.empty(COUNT, np.float32)
    for i in range(COUNT):
        total = 0
        for _ in range(8):
            state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            total += state >> 52
        x = (total - 16384) * 2.0**-17
        out[i] = x * 8 if outliers and i % 50 == 0 else x
    return out


def main() -> None:
    table = {}
    for name, outliers in (("gaussian", False), ("outliers", True)):
        x = values(outliers)
        table[name] = {}
        for t in (T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0):
            back = quants.dequantize(quants.quantize(x, t), t)
            rms = float(np.sqrt(np.mean((back.astype(np.float64) - x) ** 2)))
            table[name][t.name.lower()] = float(f"{rms:.6g}")
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "ir/tensor/testdata/ggml_errors.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
