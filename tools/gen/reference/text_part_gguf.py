"""Writes the text models of vision-language models as GGUF files, with the names, keys and orders of rows that llama.cpp's
converter gives them, beside what transformers computes.

    python text_part_gguf.py IN OUT [NAME…]        needs gguf, safetensors
    go run ./tools/check/breadth OUT

IN holds folders of breadth.py, or is spec/testdata/families; OUT for it is spec/testdata/gguf.
"""

import json
import re
import shutil
import sys

import gguf
import gguf_folders
import numpy as np
from safetensors.numpy import load_file

ARCHS = {"qwen2_vl": "qwen2vl", "qwen2_5_vl": "qwen2vl", "qwen3_vl": "qwen3vl", "qwen3_vl_moe": "qwen3vlmoe", "glm4": "glm4", "glm4v": "glm4", "glm_ocr": "glm4", "paddleocr_vl": "paddleocr", "hunyuan_vl": "hunyuan_vl"}


def keys(w, c, arch, dim):
    rope = c.get("rope_parameters") or c.get("rope_scaling") or {}
    gguf_folders.decoder(w, c, c["num_key_value_heads"], dim)
    w.add_feed_forward_length(c["intermediate_size"])
    theta = rope.get("rope_theta") or c.get("rope_theta")
    if rope.get("alpha"):
        theta *= rope["alpha"] ** (dim / (dim - 2))
    w.add_rope_freq_base(theta)
    if arch == "glm4":
        w.add_rope_dimension_count(int(dim * partial(c)))
    if sections := rope.get("mrope_section"):
        w.add_rope_dimension_sections((sections + [0, 0, 0])[:4])
    if arch == "qwen3vlmoe":
        w.add_expert_count(c.get("num_experts") or c["num_local_experts"])
        w.add_expert_used_count(c["num_experts_per_tok"])
        w.add_expert_feed_forward_length(c["moe_intermediate_size"])
    gguf_folders.yarn(w, rope)


def partial(c):
    return (c.get("rope_parameters") or {}).get("partial_rotary_factor") or c.get("partial_rotary_factor") or 1.0


def halves(x, dim, rotated):
    """Puts neighboring rows that are rotated together half of the rotated ones apart."""
    heads = x.reshape(-1, dim, *x.shape[1:])
    turned = heads[:, :rotated]
    return np.concatenate([turned[:, ::2], turned[:, 1::2], heads[:, rotated:]], axis=1).reshape(x.shape)


def tensors(folder, c, arch, dim):
    kinds = {v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(kinds[arch], c["num_hidden_layers"])
    for name, x in load_file(folder / "model.safetensors").items():
        if re.match(r"(model\.)?(visual|vit|vision_tower)\.|mlp_AR", name):
            continue
        x, name = x.astype(np.float32), name.replace("model.language_model.", "model.")
        if arch == "glm4" and (c.get("rope_parameters") or {}).get("mrope_section") and re.search(r"[qk]_proj", name):
            x = halves(x, dim, int(dim * partial(c)))
        if name.endswith("experts.gate_up_proj"):
            layer = name.split(".")[2]
            for part, half in zip(("gate", "up"), np.split(x, 2, axis=1)):
                yield f"blk.{layer}.ffn_{part}_exps.weight", np.ascontiguousarray(half)
            continue
        to = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if to is None:
            sys.exit(f"{folder}: {name} has no name in GGUF files")
        yield to + (".weight" if name.endswith("experts.down_proj") else ""), np.ascontiguousarray(x)


def convert(folder, out):
    c = json.loads((folder / "config.json").read_text())
    arch = ARCHS[c["model_type"].removesuffix("_text")]
    c = {**c, **c.get("text_config", {})}
    dim = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    out.mkdir(parents=True, exist_ok=True)
    w = gguf.GGUFWriter(out / "model.gguf", arch)
    keys(w, c, arch, dim)
    for name, x in tensors(folder, c, arch, dim):
        w.add_tensor(name, x)
    gguf_folders.finish(w, c["vocab_size"])
    shutil.copy(folder / "expected.json", out / "expected.json")


if __name__ == "__main__":
    gguf_folders.main(convert)
