#!/usr/bin/env python3
"""What llama.cpp's block types lose of a model's matrices: the root of the squared error over the sum of squares.

The encoders are ggml's own, called in its shared library (libggml-base.so of any build of llama.cpp); those rows of
docs/benchmarks/quantization.md that stand beside `go test ./codegen/pack -run TestErrorOrder -v` are made by

    python tools/gen/reference/weight_errors.py MODEL.safetensors LIBGGML_BASE
"""

import ctypes
import json
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as T
from gguf import quants

TYPES = [T.Q8_0, T.Q6_K, T.Q5_1, T.Q5_0, T.Q5_K, T.Q4_1, T.Q4_0, T.Q4_K, T.IQ4_NL, T.IQ4_XS, T.Q3_K, T.Q2_K]


def matrices(path: str):
    """The float matrices of whole rows of 64 columns (of 256 too where a type needs them)."""
    with open(path, "rb") as f:
        n = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(n))
        for name, t in header.items():
            if name == "__metadata__" or len(t["shape"]) != 2 or t["shape"][1] % 64 or t["dtype"] not in ("F32", "F16", "BF16"):
                continue
            f.seek(8 + n + t["data_offsets"][0])
            raw = f.read(t["data_offsets"][1] - t["data_offsets"][0])
            if t["dtype"] == "BF16":
                x = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
            else:
                x = np.frombuffer(raw, np.float32 if t["dtype"] == "F32" else np.float16).astype(np.float32)
            yield x.reshape(-1)


def main() -> None:
    lib = ctypes.CDLL(sys.argv[2])
    lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    data = list(matrices(sys.argv[1]))
    for t in TYPES:
        block, size = GGML_QUANT_SIZES[t]
        lost = total = 0.0
        for x in data:
            x = np.ascontiguousarray(x[: x.size // block * block])
            out = np.zeros(x.size // block * size, np.uint8)
            lib.ggml_quantize_chunk(int(t), x.ctypes.data, out.ctypes.data, 0, x.size // block, block, None)
            d = x - quants.dequantize(out, t).reshape(-1)
            lost, total = lost + float((d.astype(np.float64) ** 2).sum()), total + float((x.astype(np.float64) ** 2).sum())
        print(f"{t.name.lower():9} {8 * size / block:5.2f} bits  {100 * (lost / total) ** 0.5:7.3f} %", flush=True)


if __name__ == "__main__":
    main()
