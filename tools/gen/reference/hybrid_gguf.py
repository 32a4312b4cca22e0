"""Converts folders that breadth.py made to GGUF, with llama.cpp's converter, beside what transformers computes.

    python hybrid_gguf.py LLAMA_CPP IN OUT [NAME…]      LLAMA_CPP: a checkout of llama.cpp
    go run ./tools/check/breadth OUT

IN may also be spec/testdata/families; OUT for it is spec/testdata/gguf. The files have weights of float32 and
a vocabulary of placeholders.
"""

import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "spec/testdata/families"))

import hybrids  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402


def vocabulary(self):
    n = self.hparams["vocab_size"]
    self.gguf_writer.add_tokenizer_model("gpt2")
    self.gguf_writer.add_tokenizer_pre("default")
    self.gguf_writer.add_token_list([f"t{i}" for i in range(n)])
    self.gguf_writer.add_token_types([1] * n)


OTHERS = {"deepseek_v2": "DeepseekV2ForCausalLM", "deepseek_v3": "DeepseekV3ForCausalLM", "rwkv7": "RWKV7ForCausalLM", "deepseek_v32": "DeepseekV32ForCausalLM",
          "glm_moe_dsa": "GlmMoeDsaForCausalLM", "glm4_moe": "Glm4MoeForCausalLM", "qwen3_5_text": "Qwen3_5ForCausalLM", "qwen3_next": "Qwen3NextForCausalLM", "gemma3n_text": "Gemma3nForCausalLM",
          "gpt_oss": "GptOssForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM", "mixtral": "MixtralForCausalLM", "phi3": "Phi3ForCausalLM", "olmo3": "Olmo3ForCausalLM"}
OLD = {"linear_attention": "mamba", "full_attention": "attention"}


def as_published(config: dict) -> dict:
    """What the converter reads under the words and keys of older configurations."""
    if config["model_type"] == "granitemoehybrid":
        config["layer_types"] = [OLD[w] for w in config["layer_types"]] if "layer_types" in config else ["mamba"] * config["num_hidden_layers"]
    if config["model_type"] == "falcon_h1":
        config["head_dim"] = config["hidden_size"] // config["num_attention_heads"]
    if config["model_type"] == "kimi_linear":
        if "linear_attn_config" not in config:
            full = [i + 1 for i, w in enumerate(config["layer_types"]) if w == "full_attention"]
            config["linear_attn_config"] = {"full_attn_layers": full, "num_heads": config["linear_num_heads"],
                                            "head_dim": config["linear_head_dim"], "short_conv_kernel_size": config["linear_conv_kernel_dim"]}
        config.setdefault("first_k_dense_replace", config.get("mlp_layer_types", ["dense"]).count("dense"))
        config["moe_router_activation_func"] = "sigmoid"
    if config.get("topk_method") == "greedy":  # which the file does not state
        config["n_group"] = config["topk_group"] = 1
    if config["model_type"] in ("deepseek_v32", "glm_moe_dsa"):
        config.setdefault("first_k_dense_replace", (config.get("mlp_layer_types") or ["dense"] * 3).count("dense"))
    if config["model_type"] in ("deepseek_v3", "deepseek_v32", "glm_moe_dsa"):
        config["scoring_func"] = "sigmoid"
        config["num_key_value_heads"] = config["num_attention_heads"]
    if config["model_type"] == "rwkv7":
        config.update({f"{name}_low_rank_dim": None for name in ("decay", "a", "v", "gate")})  # which the file states, and nothing reads
    if config["model_type"] == "nemotron_h" and "layers_block_type" in config:
        words = config.pop("layers_block_type")
        config["hybrid_override_pattern"] = "".join({"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}[w] for w in words)
        config["num_hidden_layers"] = len(words)
        if "moe" not in words:
            config.pop("num_experts_per_tok")
    return config


DENSE = re.compile(r"block_sparse_moe\.(gate|up|down)_proj")


def published_name(name: str) -> str:
    """The name that the converter knows for a tensor of kimi_linear."""
    return DENSE.sub(r"mlp.\1_proj", name)


def has_mtp(weights: pathlib.Path, config: dict) -> bool:
    """Whether the file has a layer for multi-token prediction."""
    if not weights.exists():
        return False
    with safe_open(weights, "pt") as f:
        return any(k.startswith(("mtp.", f"model.layers.{config['num_hidden_layers']}.")) for k in f.keys())


def convert(folder: pathlib.Path, out: pathlib.Path) -> None:
    import conversion  # of llama.cpp
    import gguf

    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(folder, out / "hf")
    path = out / "hf/config.json"
    config = as_published(json.loads(path.read_text()))
    if "architectures" not in config:  # of spec/testdata/families
        known = hybrids.MODELS.get(folder.name)
        config["architectures"] = [known[0] if known else OTHERS[config["model_type"]]]
    weights = out / "hf/model.safetensors"  # as float32, because the converter computes in the stored type
    if weights.exists():
        save_file({published_name(k): t.float() for k, t in load_file(weights).items()}, weights)
    path.write_text(json.dumps(config))
    cls = conversion.get_model_class(config["architectures"][0])
    cls.set_vocab, cls.no_mtp = vocabulary, not has_mtp(weights, config)
    model = cls(out / "hf", gguf.LlamaFileType.ALL_F32, out / "model.gguf", model_name=folder.name)
    model.write()
    shutil.rmtree(out / "hf")
    shutil.copy(folder / "expected.json", out)


def main() -> int:
    llama, source, target, *names = sys.argv[1:]
    sys.path[:0] = [llama, llama + "/gguf-py"]
    failed = 0
    for folder in sorted(pathlib.Path(source).iterdir()):
        if not (folder / "config.json").exists() or names and not folder.name.startswith(tuple(names)):
            continue
        try:
            convert(folder, pathlib.Path(target) / folder.name)
        except Exception as e:  # one model must not hide the others
            failed += 1
            shutil.rmtree(pathlib.Path(target) / folder.name, ignore_errors=True)
            print(f"{folder.name:32s} FAIL {type(e).__name__}: {str(e)[:200]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
