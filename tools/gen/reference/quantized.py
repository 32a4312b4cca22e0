#!/usr/bin/env python3
"""Small quantized matrices in the layouts of GPTQ, AWQ, compressed-tensors, ModelOpt, FP8, FP4, bitsandbytes and HQQ checkpoints, with
what they decode to.

Each file holds one matrix "l" and its float32 values as "want", decoded here with numpy alone by each
project's own unpacking: AutoGPTQ's and GPTQModel's torch kernels, AutoAWQ's unpack_awq, compressed-tensors'
unpack_from_int32 and unpack_fp4_from_uint8, ModelOpt's NVFP4QTensor.dequantize, DeepSeek-V3's weight_dequant,
bitsandbytes' dequantize_4bit and int8_vectorwise_dequant, HQQ's Quantizer.dequantize.

    python tools/gen/reference/quantized.py spec/checkpoint/testdata/quantized
"""

import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file

OUT, IN, GROUP = 8, 128, 64
rng = np.random.default_rng(7)


def bits_to_words(values: np.ndarray, bits: int) -> np.ndarray:
    """Packs the first axis into int32 words, low bits first, as one run of bits."""
    n = values.shape[0]
    stream = ((values[:, None, :].astype(np.uint64) >> np.arange(bits, dtype=np.uint64)[None, :, None]) & 1).reshape(n * bits, -1)
    words = stream.reshape(n * bits // 32, 32, -1) << np.arange(32, dtype=np.uint64)[None, :, None]
    return torch.from_numpy(words.sum(1).astype(np.uint32).view(np.int32).copy())


def gptq(bits: int, sym: bool, act_order: bool = False, v2: bool = False, wrong_zeros: bool = False, no_index: bool = False) -> tuple[dict, dict]:
    """wrong_zeros: those of the other format; no_index: g_idx as it was allocated, all zero."""
    OUT, IN, GROUP = (32, 64, 32) if bits < 4 else (8, 128, 64)  # whole words of zeros
    codes = rng.integers(0, 2**bits, (IN, OUT))
    zeros = np.full((IN // GROUP, OUT), 2 ** (bits - 1)) if sym else rng.integers(1, 2**bits, (IN // GROUP, OUT))
    scales = torch.from_numpy(rng.uniform(0.01, 0.1, (IN // GROUP, OUT)).astype(np.float16))
    group = rng.permutation(IN) // GROUP if act_order else np.arange(IN) // GROUP
    want = scales.float().numpy()[group] * (codes - zeros[group])
    packed_zeros = zeros if v2 != wrong_zeros else zeros - 1
    stored = np.zeros_like(group) if no_index else group
    return {
        "l.qweight": bits_to_words(codes, bits), "l.qzeros": bits_to_words(packed_zeros.T, bits).T.contiguous(), "l.scales": scales,
        "l.g_idx": torch.from_numpy(stored.astype(np.int32)), "want": torch.from_numpy(want.T.astype(np.float32).copy()),
    }, {"quant_method": "gptq", "bits": bits, "sym": sym, "checkpoint_format": "gptq_v2" if v2 else "gptq"}


def awq() -> tuple[dict, dict]:
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    codes, zeros = rng.integers(0, 16, (IN, OUT)), rng.integers(0, 16, (IN // GROUP, OUT))
    scales = torch.from_numpy(rng.uniform(0.01, 0.1, (IN // GROUP, OUT)).astype(np.float16))

    def pack(x):
        words = np.zeros((x.shape[0], OUT // 8), np.uint32)
        for i, o in enumerate(order):
            words |= x[:, o::8].astype(np.uint32) << np.uint32(4 * i)
        return torch.from_numpy(words.view(np.int32).copy())

    group = np.arange(IN) // GROUP
    want = scales.float().numpy()[group] * (codes - zeros[group])
    return {"l.qweight": pack(codes), "l.qzeros": pack(zeros), "l.scales": scales,
            "want": torch.from_numpy(want.T.astype(np.float32).copy())}, {"quant_method": "awq", "version": "gemm"}


def compressed(zeros: str = "", no_index: bool = False) -> tuple[dict, dict]:
    """zeros: packed along the outputs, or i8."""
    codes = rng.integers(0, 16, (OUT, IN))
    scales = torch.from_numpy(rng.uniform(0.01, 0.1, (OUT, IN // GROUP)).astype(np.float32)).bfloat16()
    zero = rng.integers(0, 16, (OUT, IN // GROUP)) if zeros else np.full((OUT, IN // GROUP), 8)
    want = np.repeat(scales.float().numpy(), GROUP, 1) * (codes - np.repeat(zero, GROUP, 1))
    out = {"l.weight_packed": bits_to_words(codes.T, 4).T.contiguous(), "l.weight_scale": scales,
           "l.weight_shape": torch.tensor([OUT, IN]), "want": torch.from_numpy(want.astype(np.float32))}
    if zeros:
        out["l.weight_zero_point"] = bits_to_words(zero, 4) if zeros == "packed" else torch.from_numpy((zero - 8).astype(np.int8))
    if no_index:
        out["l.weight_g_idx"] = torch.full((IN,), -1, dtype=torch.int32)
    return out, {"quant_method": "compressed-tensors"}


def fp8(kind: str) -> tuple[dict, dict]:
    w = torch.from_numpy(rng.normal(0, 20, (OUT, 2 * IN if kind == "block" else IN)).astype(np.float32)).to(torch.float8_e5m2 if kind == "e5m2" else torch.float8_e4m3fn)
    shape = {"row": (OUT, 1), "tensor": (), "block": (1, 2), "e5m2": (1,)}[kind]
    scale = torch.from_numpy(np.asarray(rng.uniform(1e-4, 1e-3, shape), np.float32))
    name = "l.weight_scale_inv" if kind == "block" else "l.weight_scale"
    return {"l.weight": w, name: scale, "want": w.float() * (scale.repeat_interleave(128, 1) if kind == "block" else scale)}, {"quant_method": "fp8"}


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def fp4(rows: int, cols: int) -> tuple[torch.Tensor, np.ndarray]:
    """Codes, two per byte with the first in the low bits, and their values."""
    codes = rng.integers(0, 16, (rows, cols))
    return torch.from_numpy((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)), E2M1[codes]


def groups(scale: np.ndarray, size: int) -> np.ndarray:
    return np.repeat(scale, size, 1)


def powers(*shape: int) -> tuple[torch.Tensor, np.ndarray]:
    """Exponents with a bias of 127, and their powers of two."""
    e = rng.integers(117, 123, shape)
    return torch.from_numpy(e.astype(np.uint8)), np.exp2(e - 127.0).astype(np.float32)


def nvfp4(kind: str) -> tuple[dict, dict]:
    packed, values = fp4(OUT, IN)
    scale = torch.from_numpy(rng.uniform(50, 400, (OUT, IN // 16)).astype(np.float32)).to(torch.float8_e4m3fn)
    values = values * groups(scale.float().numpy(), 16)
    if kind == "compressed":  # the global scale divides
        return {"l.weight_packed": packed, "l.weight_scale": scale, "l.weight_global_scale": torch.tensor([3210.0]), "l.input_global_scale": torch.tensor([7.0]),
                "want": torch.from_numpy(values / np.float32(3210))}, {"quant_method": "compressed-tensors"}
    inputs = torch.from_numpy(rng.uniform(0.5, 2, IN).astype(np.float32))
    return {"l.weight": packed, "l.weight_scale": scale, "l.weight_scale_2": torch.tensor(0.0004), "l.input_scale": torch.tensor(0.1), "l.pre_quant_scale": inputs,
            "l.k_scale": torch.tensor(1.5), "want": torch.from_numpy(values * np.float32(0.0004) * inputs.numpy())}, {"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ"}


def mx(kind: str) -> tuple[dict, dict]:
    """Scales that are powers of two: MXFP4 and MXFP8 of compressed-tensors, FP8 and FP4 of DeepSeek-V4."""
    if kind == "mxfp4":
        packed, values = fp4(OUT, IN)
        raw, scale = powers(OUT, IN // 32)
        return {"l.weight_packed": packed, "l.weight_scale": raw, "want": torch.from_numpy(values * groups(scale, 32))}, {"quant_method": "compressed-tensors"}
    if kind == "fp4_scale":
        packed, values = fp4(OUT, IN)
        raw, scale = powers(OUT, IN // 32)
        return {"l.weight": packed.view(torch.int8), "l.scale": raw.view(torch.float8_e8m0fnu), "want": torch.from_numpy(values * groups(scale, 32))}, {"quant_method": "fp8"}
    w = torch.from_numpy(rng.normal(0, 20, (OUT, IN)).astype(np.float32)).to(torch.float8_e4m3fn)
    if kind == "mxfp8":
        raw, scale = powers(OUT, IN // 32)
        return {"l.weight": w, "l.weight_scale": raw, "want": w.float() * torch.from_numpy(groups(scale, 32))}, {"quant_method": "compressed-tensors"}
    raw, scale = powers(2, IN // 32)
    return {"l.weight": w, "l.scale": raw.view(torch.float8_e8m0fnu), "want": w.float() * torch.from_numpy(np.repeat(groups(scale, 32), 5, 0)[:OUT])}, {"quant_method": "fp8", "weight_block_size": [5, 32]}


def experts(per: str) -> tuple[dict, dict]:
    """Matrices of three experts in one tensor."""
    w = torch.from_numpy(rng.normal(0, 20, (3, OUT, IN)).astype(np.float32)).to(torch.float8_e4m3fn)
    scale = torch.from_numpy(rng.uniform(1e-4, 1e-3, {"block": (3, 2, 4), "expert": (3,)}[per]).astype(np.float32))
    wide = scale.repeat_interleave(OUT // 2, 1).repeat_interleave(IN // 4, 2) if per == "block" else scale[:, None, None]
    return {"l.weight": w, f"l.weight_scale{'_inv' if per == 'block' else ''}": scale, "want": w.float() * wide}, {"quant_method": "fp8"}


def int8() -> tuple[dict, dict]:
    w = torch.from_numpy(rng.integers(-127, 128, (OUT, IN)).astype(np.int8))
    scale = torch.from_numpy(rng.uniform(1e-4, 1e-3, (OUT, 1)).astype(np.float32))
    return {"l.weight": w, "l.weight_scale": scale, "want": w.float() * scale}, {"quant_method": "compressed-tensors"}


def json_tensor(state: dict) -> torch.Tensor:
    return torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)


def bnb(kind: str, nested: bool = False, shape: tuple = (OUT, IN), block: int = 64) -> tuple[dict, dict]:
    """Four bits: codes of levels with the first in the upper bits, scales by blocks of elements, which nested has in 8 bits."""
    n = int(np.prod(shape))
    blocks = -(-n // block)
    levels = np.sort(rng.uniform(-1, 1, 16)).astype(np.float32)
    codes = rng.integers(0, 16, n)
    absmax = rng.uniform(0.5, 2, blocks).astype(np.float32)
    state = {"quant_type": kind, "blocksize": block, "dtype": "float16", "shape": list(shape)}
    out = {"l.weight": torch.from_numpy((codes[::2] << 4 | codes[1::2]).astype(np.uint8)[:, None].copy()), "l.weight.quant_map": torch.from_numpy(levels)}
    if nested:
        table, coarse, offset = rng.uniform(-1, 1, 256).astype(np.float32), rng.uniform(0.1, 0.3, -(-blocks // 4)).astype(np.float32), 1.25
        of = rng.integers(0, 256, blocks)
        absmax = table[of] * np.repeat(coarse, 4)[:blocks] + np.float32(offset)
        state |= {"nested_blocksize": 4, "nested_dtype": "float32", "nested_offset": offset}
        out |= {"l.weight.nested_absmax": torch.from_numpy(coarse), "l.weight.nested_quant_map": torch.from_numpy(table)}
    out["l.weight.absmax"] = torch.from_numpy(of.astype(np.uint8) if nested else absmax)
    out[f"l.weight.quant_state.bitsandbytes__{kind}"] = json_tensor(state)
    out["want"] = torch.from_numpy((levels[codes] * np.repeat(absmax, block)[:n]).reshape(shape).astype(np.float32))
    return out, {"quant_method": "bitsandbytes"}


def bnb8() -> tuple[dict, dict]:
    w = torch.from_numpy(rng.integers(-127, 128, (OUT, IN)).astype(np.int8))
    scale = torch.from_numpy(rng.uniform(0.5, 2, OUT).astype(np.float32))
    return {"l.weight": w, "l.SCB": scale, "l.weight_format": torch.tensor(0, dtype=torch.uint8), "want": w.float() * (scale[:, None] / 127)}, {"quant_method": "bitsandbytes"}


def hqq(bits: int, axis: int = 1, size: int = 64) -> tuple[dict, dict]:
    """The elements form a matrix of groups, as rows or as columns; words hold codes from equal parts of its rows, the first in the upper bits."""
    rows, cols = (OUT * IN // size, size) if axis == 1 else (size, OUT * IN // size)
    codes = rng.integers(0, 2**bits, (rows, cols))
    meta = (rows, 1) if axis == 1 else (1, cols)
    scale, zero = (torch.from_numpy(rng.uniform(lo, hi, meta).astype(np.float16)) for lo, hi in ((0.01, 0.1), (0, 2**bits - 1)))
    per = 10 if bits == 3 else 8 // bits
    padded = np.zeros((-(-rows // per) * per, cols), np.uint32)
    padded[:rows] = codes
    words = sum(part << np.uint32(bits * (per - 1 - i)) for i, part in enumerate(np.split(padded, per)))
    packing = "3bit_32" if bits == 3 else f"{bits}bit_u8"
    want = ((codes - zero.float().numpy()) * scale.float().numpy()).reshape(OUT, IN)
    text = lambda t: torch.tensor(list(t.encode()), dtype=torch.uint8)
    return {"l.W_q": torch.from_numpy(words.astype(np.uint32).view(np.int32) if bits == 3 else words.astype(np.uint8)), "l.scale": scale, "l.zero": zero,
            "l.shape": torch.tensor([OUT, IN]), "l.nbits": torch.tensor(bits), "l.axis": torch.tensor(axis), "l.group_size": torch.tensor(size),
            "l.packing": text(packing), "l.quant_scale": torch.tensor(False), "l.quant_zero": torch.tensor(False), "l.encoded_state_dict": torch.tensor(True),
            "want": torch.from_numpy(want.astype(np.float32))}, {"quant_method": "hqq"}


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    cases = {"gptq2": gptq(2, True), "gptq3": gptq(3, False), "gptq4": gptq(4, True), "gptq4_asym": gptq(4, False),
             "gptq4_v2": gptq(4, False, v2=True), "gptq4_desc": gptq(4, True, act_order=True), "gptq8": gptq(8, True),
             "awq": awq(), "compressed": compressed(), "fp8_row": fp8("row"), "fp8_tensor": fp8("tensor"),
             "fp8_block": fp8("block"), "fp8_e5m2": fp8("e5m2"),
             "nvfp4": nvfp4("compressed"), "nvfp4_modelopt": nvfp4("modelopt"), "mxfp4": mx("mxfp4"), "mxfp8": mx("mxfp8"), "fp4_scale": mx("fp4_scale"), "fp8_scale": mx("fp8_scale"),
             "fp8_experts": experts("expert"), "fp8_experts_block": experts("block"), "int8": int8(),
             "gptq4_zeros": gptq(4, True, wrong_zeros=True), "gptq4_v2_zeros": gptq(4, True, v2=True, wrong_zeros=True), "gptq4_no_index": gptq(4, True, no_index=True),
             "compressed_no_index": compressed(no_index=True), "compressed_zeros": compressed("packed"), "compressed_zeros_i8": compressed("i8"),
             "bnb_nf4": bnb("nf4"), "bnb_fp4_nested": bnb("fp4", nested=True, shape=(3, 2, 96), block=32), "bnb_int8": bnb8(),
             "hqq4": hqq(4), "hqq3": hqq(3), "hqq2": hqq(2), "hqq1": hqq(1), "hqq8": hqq(8), "hqq4_axis0": hqq(4, axis=0)}
    for name, case in cases.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        save_file(case[0], folder / name / "model.safetensors")
        (folder / name / "config.json").write_text(json.dumps({"quantization_config": case[1]}) + "\n")


if __name__ == "__main__":
    main()
