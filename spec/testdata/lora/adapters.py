"""Makes the folders beside it: LoRA adapters as PEFT saves them for tiny models of ../families, and what transformers computes with
them in float32.

    python adapters.py [NAME…]        needs tools/gen/reference/requirements.txt

NAME/expected.json has the results by adapter; "" is the model alone. NAME/ADAPTER is a folder of PEFT, NAME/ADAPTER.gguf the same
adapter as llama.cpp's convert_lora_to_gguf.py names and orders it; refused.py makes adapters that iflowc must refuse.
Matrices come from a seed and their names. A and B are such that their product is about a third as large as the weight.
"""

import json
import math
import os
import shutil
import sys
import zlib

import peft
import torch
import transformers as tf

HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = os.path.join(os.path.dirname(HERE), "families")
REFERENCE = os.path.join(HERE, "../../../tools/gen/reference")
sys.path[:0] = [FAMILIES, REFERENCE]
import gguf_files  # noqa: E402
import make as families  # noqa: E402
import refused  # noqa: E402

EFFECT = 0.5  # deviation of the product of A and B, times the square root of the inputs
ROWS = 3  # of logits
ALL = "all-linear"


def lora(targets=ALL, r=4, alpha=8, **kw):
    return dict(target_modules=targets, r=r, lora_alpha=alpha, **kw)


ATTENTION = ["q_proj", "v_proj"]
ADAPTERS = {  # model: {adapter: parameters of LoraConfig, dtype: that of the file}
    "llama": {
        "all": lora(r=8, alpha=16),
        "rank_stabilized": lora(ATTENTION, r=16, alpha=4, use_rslora=True),
        "patterns": lora(r=2, alpha=2, rank_pattern={"q_proj": 5, "layers.1.mlp.down_proj": 17},
                         alpha_pattern={"down_proj": 40, "layers.0.self_attn.q_proj": 3}),
        "head": lora(["o_proj", "lm_head"], r=3),
        "layer": lora(["q_proj", "down_proj"], r=1, layers_to_transform=[1], dtype="bfloat16"),
        "wide": lora(["up_proj"], r=256, alpha=256, dtype="float16"),
    },
    "qwen2": {"all": lora(dtype="float16"), "values": lora(["v_proj", "gate_proj"], r=7)},
    "mistral": {"all": lora(r=16), "old": lora(["k_proj"], r=2)},
    "gpt2": {"all": lora(fan_in_fan_out=True), "attention": lora(["attn.c_attn"], fan_in_fan_out=True)},
    "phi3": {"all": lora(r=6), "fused": lora(["qkv_proj", "gate_up_proj"], r=20)},
    "gemma2": {"all": lora()},
    "gemma3": {"all": lora(dtype="bfloat16")},
    "qwen3": {"all": lora(), "keys": lora(["k_proj"])},
    "gpt_neox": {"all": lora(), "fused": lora(["query_key_value"], r=5)},
    "gptj": {"all": lora()},
    "bloom": {"all": lora()},
    "falcon_40b": {"all": lora()},
    "gpt_bigcode": {"all": lora()},
    "glm4": {"all": lora()},
    "cohere": {"all": lora()},
    "mixtral": {"attention": lora(["q_proj", "k_proj", "v_proj", "o_proj"]), "two": lora(["q_proj", "o_proj"])},
    "opt": {"all": lora()},
    "starcoder2": {"all": lora()},
    "bert": {"all": lora(), "attention": lora(["query", "value"])},
    "distilbert": {"all": lora()},
    "modernbert": {"all": lora()},
    "t5": {"all": lora(), "attention": lora(["q", "v"])},
    "bart": {"all": lora(), "cross": lora(r".*encoder_attn\.(k|v|q)_proj")},
}
OLD = ("peft_type", "r", "lora_alpha", "target_modules")  # keys of a configuration that an old version or another program wrote
GGUF = {"llama": ["all", "head"], "qwen2": ["all"], "phi3": ["fused"]}


def randomize(model, seed, dtype):
    """Random matrices of an adapter, as a file of the type holds them."""
    for name, p in model.named_parameters():
        if not any(part in name for part in (".lora_A.", ".lora_B.")):
            continue
        g = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
        module = model.get_submodule(name[:name.rindex(".lora_")])
        r, scale = module.r["default"], module.scaling["default"]
        x = torch.randn(p.shape, generator=g)
        x = x / math.sqrt(p.shape[1]) if ".lora_A." in name else x * EFFECT / math.sqrt(r) / scale
        p.data = x.to(getattr(torch, dtype)).float()


def base_model(name):
    """The model of a folder of ../families, and what computes its results."""
    for table, outputs in families.TABLES:
        if name in table:
            cls, _, _, *rest = table[name]
            folder = os.path.join(FAMILIES, name)
            model, info = getattr(tf, cls).from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
            wrong = {k: v for k, v in info.items() if v}
            if wrong:
                raise RuntimeError(f"{folder} does not load cleanly: {wrong}")
            model.config.name_or_path = name
            return model.eval(), lambda m: outputs(m, *rest)
    raise SystemExit(f"{name}: no such model")


def adapted(name, adapter):
    """The model with an adapter, and what computes its results."""
    params = dict(ADAPTERS[name][adapter])
    dtype = params.pop("dtype", "float32")
    model, outputs = base_model(name)
    model = peft.get_peft_model(model, peft.LoraConfig(**params))
    randomize(model, f"{name} {adapter}", dtype)
    return model, outputs, dtype


def save(model, folder, dtype="float32", only=()):
    """Writes the adapter's two files, without the model card; of the configuration only some keys, if they are given."""
    shutil.rmtree(folder, ignore_errors=True)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    os.remove(os.path.join(folder, "README.md"))
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as f:
        config = json.load(f)
    config["base_model_name_or_path"] = os.path.basename(config["base_model_name_or_path"])
    for key in ("target_modules", "target_parameters"):
        if isinstance(config.get(key), list):
            config[key].sort()  # a set in PEFT
    with open(path, "w") as f:
        json.dump({k: v for k, v in config.items() if not only or k in only}, f, indent=2, sort_keys=True)
        f.write("\n")


def furthest(a, b):
    return max(abs(x - y) for p, q in zip(a, b, strict=True) for x, y in zip(p, q, strict=True))


def make(name):
    """Writes the folder of a model."""
    out = os.path.join(HERE, name)
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    model, outputs = base_model(name)
    results = {"": outputs(model)}
    key = "logits" if "logits" in results[""] else "pooled"
    for adapter in ADAPTERS[name]:
        model, outputs, dtype = adapted(name, adapter)
        results[adapter] = outputs(model.base_model.model)
        if adapter in GGUF.get(name, ()):
            gguf_files.write(name, model, os.path.join(out, adapter))
        save(model, os.path.join(out, adapter), dtype, OLD if adapter == "old" else ())
        change = furthest(results[""][key], results[adapter][key])
        print(f"{name:12s} {adapter:16s} {len(model.targeted_module_names):3d} matrices, changes {key} by up to {change:.2f}")
    if name == "llama":
        gguf_files.write_llama(base_model(name)[0], os.path.join(out, "model.gguf"))
    inputs = {k: results[""][k] for k in ("ids", "types", "wanted", "decoder_ids") if k in results[""]}
    outputs = {a: {k: v for k, v in r.items() if k not in inputs} for a, r in results.items()}
    with open(os.path.join(out, "expected.json"), "w") as f:
        json.dump({**inputs, "outputs": outputs}, f)
        f.write("\n")


def main():
    tf.logging.set_verbosity_error()
    tf.logging.disable_progress_bar()
    for name in sys.argv[1:] or [*ADAPTERS, "refused"]:
        if name == "refused":
            refused.make(base_model, save)
        else:
            make(name)


if __name__ == "__main__":
    main()
