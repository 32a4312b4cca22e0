"""Writes what ir/tensor takes from gguf-py 0.19.0 about GGUF's types of 1 to 3 bits.

    python iq_grids.py grids ../../../ir/tensor/iq_grids.bin     the grids of levels
    python iq_grids.py blocks >>../../../ir/tensor/testdata/gguf_blocks.txt

The second prints one block of each type and its values, as the other lines of that file have them. gguf-py does not know q2_0; its
values are (code - 1)·d, as in ggml."""

import re, sys

import gguf, numpy as np
from gguf import GGMLQuantizationType as T

GRIDS = ["IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"]
# types, their sizes, and the places of their f16 numbers
BLOCKS = {T.Q1_0: (18, [0]), "q2_0": (18, [0]), T.IQ1_S: (50, [0]), T.IQ1_M: (56, []), T.IQ2_XXS: (66, [0]), T.IQ2_XS: (74, [0]),
          T.IQ2_S: (82, [0]), T.IQ3_XXS: (98, [0]), T.IQ3_S: (110, [0])}


def values(kind, block):
    if kind == "q2_0":
        d = block[:2].view(np.float16).astype(np.float32)[0]
        return np.array([d * np.float32(int(block[2 + i // 4] >> (i % 4 * 2) & 3) - 1) for i in range(64)], np.float32)
    if kind == T.Q1_0:
        d = block[:2].view(np.float16).astype(np.float32)[0]
        return np.array([d if block[2 + i // 8] >> (i % 8) & 1 else -d for i in range(128)], np.float32)
    return gguf.quants.dequantize(block, kind).reshape(-1)


def main():
    if sys.argv[1] == "grids":
        with open(sys.argv[2], "wb") as f:
            for name in GRIDS:
                f.write(bytes.fromhex(re.sub(rb"\s", b"", getattr(gguf.quants, name).grid_hex).decode()))
        return
    rng = np.random.default_rng(11)
    for kind, (size, scales) in BLOCKS.items():
        block = rng.integers(0, 256, size, dtype=np.uint8)
        for at in scales:
            block[at:at + 2] = np.array([rng.normal(0, 0.05)], np.float16).view(np.uint8)
        if kind == T.IQ1_M:  # the f16 scale 0x29a5 is in the upper four bits of four words
            for i, nibble in enumerate([0x5, 0xA, 0x9, 0x2]):
                block[49 + 2 * i] = block[49 + 2 * i] & 15 | nibble << 4
        out = values(kind, block) + np.float32(0)
        print((kind if isinstance(kind, str) else kind.name).lower(), bytes(block).hex(), out.astype(">f4").tobytes().hex())


main()
