"""Makes the adapters for the tiny Llama that iflowc must refuse, in the folder refused: most as PEFT saves them, the others with one
thing changed."""

import json
import os
import shutil
import warnings

import peft
import torch
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "refused")
Q, FIRST = ["q_proj"], dict(layers_to_transform=[0])
ONE = dict(target_modules=Q, r=2, **FIRST)

SAVED = {  # parameters of LoraConfig
    "dora": dict(ONE, use_dora=True),
    "modules_to_save": dict(ONE, modules_to_save=["lm_head"]),
    "bias": dict(ONE, bias="all"),
    "lora_bias": dict(ONE, lora_bias=True),
    "embedding": dict(target_modules=["embed_tokens"], r=2),
    "new_tokens": dict(ONE, trainable_token_indices=[1, 2]),
    "rank_300": dict(target_modules=["k_proj"], r=300, **FIRST),
    "pissa": dict(ONE, init_lora_weights="pissa"),
    "olora": dict(ONE, init_lora_weights="olora"),
    "activated": dict(ONE, alora_invocation_tokens=[3, 4]),
    "replicated": dict(target_modules=Q, r=2, layer_replication=[(0, 2), (1, 2)]),
    "experts": dict(target_modules="all-linear", r=2),  # of Mixtral: PEFT targets the tensors of all experts
}
MODELS = {"experts": "mixtral", "bias": "llama_bias_linear"}  # others than llama
OTHERS = {  # other methods of PEFT
    "ia3": lambda: peft.IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
    "loha": lambda: peft.LoHaConfig(target_modules=Q, r=2),
    "vera": lambda: peft.VeraConfig(target_modules=Q, r=2),
}
A0 = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
B0 = A0.replace("lora_A", "lora_B")


def renamed(tensors, old, new):
    return {k.replace(old, new): v for k, v in tensors.items()}


CHANGED = {  # a valid adapter with other tensors, or another configuration
    "no_such_layer": (lambda t: renamed(t, "layers.0.", "layers.2."), {}),
    "no_such_module": (lambda t: renamed(t, "q_proj", "query"), {}),
    "norm": (lambda t: renamed(t, "self_attn.q_proj", "input_layernorm"), {}),
    "inputs": (lambda t: {**t, A0: torch.ones(2, 17)}, {}),
    "outputs": (lambda t: {**t, B0: torch.ones(24, 2)}, {}),
    "ranks_differ": (lambda t: {**t, B0: torch.ones(16, 3)}, {}),
    "rank_of_config": (lambda t: t, {"r": 4}),
    "vector": (lambda t: {**t, A0: torch.ones(32)}, {}),
    "only_a": (lambda t: {A0: t[A0]}, {}),
    "only_b": (lambda t: {B0: t[B0]}, {}),
    "empty": (lambda t: {}, {}),
    "nan": (lambda t: {**t, B0: t[B0] + float("nan")}, {}),
    "infinite": (lambda t: {**t, A0: t[A0] + float("inf")}, {}),
    "integers": (lambda t: {**t, A0: torch.ones(2, 16, dtype=torch.int8)}, {}),
    "magnitude": (lambda t: {**t, A0.replace("lora_A.weight", "lora_magnitude_vector"): torch.ones(16)}, {}),
    "stranger": (lambda t: {**t, "base_model.model.model.norm.weight": torch.ones(16)}, {}),
    "qalora": (lambda t: t, {"use_qalora": True}),
    "infinite_alpha": (lambda t: t, {"lora_alpha": 1e300}),
    "text_rank": (lambda t: t, {"r": "2"}),
    "negative_rank": (lambda t: t, {"r": -2}),
    "no_type": (lambda t: t, {"peft_type": None}),
}


def changed(folder, tensors, config):
    """Changes the files of a valid adapter."""
    path = os.path.join(folder, "adapter_model.safetensors")
    save_file(tensors(load_file(path)), path)
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as f:
        text = {k: v for k, v in {**json.load(f), **config}.items() if k not in config or v is not None}
    with open(path, "w") as f:
        json.dump(text, f, indent=2, sort_keys=True)
        f.write("\n")


def make(base_model, save):
    """Writes all of them."""
    shutil.rmtree(OUT, ignore_errors=True)
    warnings.simplefilter("ignore")
    configs = {n: (lambda p=p: peft.LoraConfig(**p)) for n, p in SAVED.items()} | OTHERS | {n: lambda: peft.LoraConfig(**ONE) for n in CHANGED}
    for name, config in configs.items():
        torch.manual_seed(1)
        model = peft.get_peft_model(base_model(MODELS.get(name, "llama"))[0], config())
        for key, p in model.named_parameters():
            if "lora_B" in key or "lora_embedding_B" in key:
                p.data.fill_(0.125)
        folder = os.path.join(OUT, name)
        save(model, folder, "float16" if name == "rank_300" else "float32")
        if name in CHANGED:
            changed(folder, *CHANGED[name])
    for name in ("no_config", "config_cut", "model_cut", "no_model"):
        damaged(name)


def damaged(name):
    """A valid adapter with a file missing or cut."""
    folder = os.path.join(OUT, name)
    shutil.copytree(os.path.join(HERE, "llama", "layer"), folder)
    kind, _, _ = name.partition("_")
    config, model = os.path.join(folder, "adapter_config.json"), os.path.join(folder, "adapter_model.safetensors")
    if name == "no_config":
        os.remove(config)
    elif name == "no_model":
        os.remove(model)
    else:
        path = config if kind == "config" else model
        os.truncate(path, os.path.getsize(path) * 2 // 3)
