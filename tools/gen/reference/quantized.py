#!/usr/bin/env python3
"""Small quantized matrices in the layouts of GPTQ, AWQ, compressed-tensors, ModelOpt, FP8 and FP4 checkpoints, with what they decode to.

Each file holds one matrix "l" and its float32 values as "want", decoded here with numpy alone by each
project's own unpacking: AutoGPTQ's and GPTQModel's torch kernels, AutoAWQ's unpack_awq, compressed-tensors'
unpack_from_int32 and unpack_fp4_from_uint8, ModelOpt's NVFP4QTensor.dequantize, DeepSeek-V3's weight_dequant.

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


def gptq(bits: int, sym: bool, act_order: bool = False, v2: bool = False) -> tuple[dict, dict]:
    OUT, IN, GROUP = (32, 64, 32) if bits < 4 else (8, 128, 64)  # whole words of zeros
    codes = rng.integers(0, 2**bits, (IN, OUT))
    zeros = np.full((IN // GROUP, OUT), 2 ** (bits - 1)) if sym else rng.integers(1, 2**bits, (IN // GROUP, OUT))
    scales = torch.from_numpy(rng.uniform(0.01, 0.1, (IN // GROUP, OUT)).astype(np.float16))
    group = rng.permutation(IN) // GROUP if act_order else np.arange(IN) // GROUP
    want = scales.float().numpy()[group] * (codes - zeros[group])
    packed_zeros = zeros if v2 else zeros - 1
    return {
        "l.qweight": bits_to_words(codes, bits), "l.qzeros": bits_to_words(packed_zeros.T, bits).T.contiguous(), "l.scales": scales,
        "l.g_idx": torch.from_numpy(group.astype(np.int32)), "want": torch.from_numpy(want.T.astype(np.float32).copy()),
    }, {"quant_method": "gptq", "bits": bits, "checkpoint_format": "gptq_v2" if v2 else "gptq"}


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


def compressed() -> tuple[dict, dict]:
    codes = rng.integers(0, 16, (OUT, IN))
    scales = torch.from_numpy(rng.uniform(0.01, 0.1, (OUT, IN // GROUP)).astype(np.float32)).bfloat16()
    want = np.repeat(scales.float().numpy(), GROUP, 1) * (codes - 8)
    return {"l.weight_packed": bits_to_words(codes.T, 4).T.contiguous(), "l.weight_scale": scales,
            "l.weight_shape": torch.tensor([OUT, IN]), "want": torch.from_numpy(want.astype(np.float32))}, {"quant_method": "compressed-tensors"}


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


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    cases = {"gptq2": gptq(2, True), "gptq3": gptq(3, False), "gptq4": gptq(4, True), "gptq4_asym": gptq(4, False),
             "gptq4_v2": gptq(4, False, v2=True), "gptq4_desc": gptq(4, True, act_order=True), "gptq8": gptq(8, True),
             "awq": awq(), "compressed": compressed(), "fp8_row": fp8("row"), "fp8_tensor": fp8("tensor"),
             "fp8_block": fp8("block"), "fp8_e5m2": fp8("e5m2"),
             "nvfp4": nvfp4("compressed"), "nvfp4_modelopt": nvfp4("modelopt"), "mxfp4": mx("mxfp4"), "mxfp8": mx("mxfp8"), "fp4_scale": mx("fp4_scale"), "fp8_scale": mx("fp8_scale"),
             "fp8_experts": experts("expert"), "fp8_experts_block": experts("block"), "int8": int8()}
    for name, case in cases.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        save_file(case[0], folder / name / "model.safetensors")
        (folder / name / "config.json").write_text(json.dumps({"quantization_config": case[1]}) + "\n")


if __name__ == "__main__":
    main()
