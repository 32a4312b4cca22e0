"""Writes folders of encoders as GGUF files, with the names and keys that llama.cpp's converter gives them, beside the hidden
states that transformers computes. The files have no heads.

    python encoder_gguf.py IN OUT [NAME…]        needs gguf, safetensors
    go run ./tools/check/breadth OUT

IN holds folders of breadth.py, or is spec/testdata/families; OUT for it is spec/testdata/gguf.
"""

import json
import sys

import gguf
import gguf_folders
import numpy as np
from safetensors.numpy import load_file

ARCHS = {"nomic_bert": "nomic-bert", "bert": "jina-bert-v2", "jina_embeddings_v3": "jina-bert-v3", "eurobert": "eurobert", "neobert": "neo-bert", "gemma3_text": "gemma-embedding"}
PREFIXES = ("bert.", "roberta.", "nomic_bert.", "model.")
HEADS = ("cls.", "lm_head.", "decoder.", "pooler.", "classifier.", "dense.", "score.")


def keys(w, c, arch):
    rope = c.get("rope_parameters") or {}
    w.add_block_count(c.get("num_hidden_layers") or c["n_layer"])
    w.add_context_length(c.get("max_position_embeddings") or c.get("n_positions") or c.get("max_length", 1024))
    w.add_embedding_length(c.get("hidden_size") or c["n_embd"])
    width = c.get("intermediate_size") or c["n_inner"]
    w.add_feed_forward_length((2 * width // 3 + 7) // 8 * 8 if arch == "neo-bert" else width)
    w.add_head_count(c.get("num_attention_heads") or c["n_head"])
    if "num_key_value_heads" in c:
        w.add_head_count_kv(c["num_key_value_heads"])
    if c.get("head_dim"):
        w.add_key_length(c["head_dim"])
        w.add_value_length(c["head_dim"])
    w.add_causal_attention(False)
    if arch in ("eurobert", "neo-bert", "gemma-embedding"):
        w.add_layer_norm_rms_eps(c.get("rms_norm_eps") or c.get("norm_eps", 1e-6))
    else:
        w.add_layer_norm_eps(c.get("layer_norm_eps") or c.get("layer_norm_epsilon", 1e-12))
    theta = {"neo-bert": 10000.0, "gemma-embedding": 1000000.0}.get(arch, rope.get("rope_theta") or c.get("rotary_emb_base"))
    if theta:
        w.add_rope_freq_base(theta)
    if arch == "gemma-embedding":
        w.add_sliding_window(c["sliding_window"])
    if arch == "nomic-bert-moe":
        w.add_moe_every_n_layers(c["moe_every_n_layers"])
        w.add_expert_count(c["num_experts"])
        w.add_expert_used_count(c["moe_top_k"])


def tensors(folder, c, arch, names):
    for name, x in load_file(folder / "model.safetensors").items():
        for prefix in PREFIXES:
            name = name.removeprefix(prefix)
        if name.startswith(HEADS) or "experts.bias" in name:
            continue
        x = x.astype(np.float32)
        if "mlp.experts.mlp" in name:
            x = x.reshape(c["num_experts"], -1, c.get("hidden_size") or c["n_embd"])
            x, name = x.transpose(0, 2, 1) if name.endswith("w2") else x, name + ".weight"
        if arch == "gemma-embedding" and name.endswith("norm.weight"):
            x = x + 1
        to = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if to is None:
            sys.exit(f"{folder}: {name} has no name in GGUF files")
        yield to, np.ascontiguousarray(x)


def convert(folder, out):
    c = json.loads((folder / "config.json").read_text())
    expected = json.loads((folder / "expected.json").read_text())
    if "arrays" in expected:
        expected["arrays"] = {k: v for k, v in expected["arrays"].items() if k == "prompt.last_hidden"}
    expected = {k: v for k, v in expected.items() if k not in ("logits", "pooled", "classes", "embedding")}
    arch = ARCHS[c["model_type"]] + ("-moe" if c.get("moe_every_n_layers") else "")
    if c.get("for_code"):
        return
    out.mkdir(parents=True, exist_ok=True)
    w = gguf.GGUFWriter(out / "model.gguf", arch)
    keys(w, c, arch)
    kinds = {v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}
    for name, x in tensors(folder, c, arch, gguf.get_tensor_name_map(kinds[arch], c.get("num_hidden_layers") or c["n_layer"])):
        w.add_tensor(name, x)
    gguf_folders.finish(w, c["vocab_size"])
    (out / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    gguf_folders.main(convert)
