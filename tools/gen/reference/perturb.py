"""Finds configuration keys that change what transformers computes: takes each tiny model of spec/testdata/families and of
breadth_variants.py, changes one key of its configuration at a time, and keeps a folder for each change of the results.

    python perturb.py OUT [NAME…] [--list]
    (cd ../../.. && go test ./spec -run TestFamilies -args -families OUT)

iflowc must follow each change or refuse the folder. A test that fails with "differ by" is a key that iflowc does not read,
any other failure a refusal; one that says "bug" is none that helps a user. The keys are those that the configuration class takes, those
that it has, and those that the modeling file reads of it; a folder is called MODEL,KEY=VALUE. KEY=- is the class's own
default, which config.json then does not state.
"""

import argparse
import inspect
import json
import pathlib
import re
import resource
import shutil
import signal
import sys

import torch
import transformers as tf

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "spec/testdata/families"))

import make  # noqa: E402

ACTIVATIONS = ["relu", "gelu", "gelu_new", "silu", "quick_gelu", "relu2", "tanh"]
ROPES = [
    dict(rope_type="linear", factor=4.0),
    dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16),
    dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=8, attention_factor=0.7),
]
FULL, SLIDE = "full_attention", "sliding_attention"
SAME = 1e-4  # of the largest result
LIMIT, MEMORY = 20, 24 << 30  # seconds and bytes for a model: some sizes make it very large
SKIP = {  # what says how to run or to train and not what to compute, sizes of inputs, and what make.py sets itself
    "vocab_size", "torch_dtype", "dtype", "use_cache", "output_attentions", "output_hidden_states", "return_dict", "torchscript", "gradient_checkpointing",
    "is_encoder_decoder", "is_decoder", "add_cross_attention", "tie_encoder_decoder", "chunk_size_feed_forward", "architectures", "model_type", "name_or_path",
    "_attn_implementation", "attn_implementation", "transformers_version", "problem_type", "id2label", "label2id", "num_labels", "output_router_logits",
    "pruned_heads", "cross_attention_hidden_size", "use_return_dict", "initializer_range", "attn_config", "quantization_config", "base_model_tp_plan", "base_model_pp_plan",
}
STATED_IN = {  # parameters by the key of config.json that states them
    "rope_parameters": ("rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor", "rotary_pct"),
    "scale_decoder_outputs": ("tie_word_embeddings", "_own_head"),
}


def add_breadth() -> None:
    from breadth_variants import VARIANTS

    have = {m[1] for m in make.MODELS.values()}
    for v in VARIANTS:
        if isinstance(v.config, str) and v.config not in have and not v.encoder and v.before_save is None:
            have.add(v.config)
            make.MODELS[v.key] = (v.model, v.config, v.params)


def compute(outputs, what):
    """The model and what is expected of it."""
    cls, config_cls, params, *rest = what
    signal.alarm(LIMIT)
    try:
        model = make.build(cls, config_cls, params)
        return model, outputs(model, *rest)
    finally:
        signal.alarm(0)


def differs(a, b) -> bool:
    for key in a:
        if key in ("ids", "types", "decoder_ids", "wanted", "whole"):
            continue
        x, y = torch.tensor(a[key]), torch.tensor(b.get(key, []))
        if x.shape != y.shape or not torch.isfinite(y).all() or (x - y).abs().max() > SAME * x.abs().max():
            return True
    return False


def sane(expected) -> bool:
    return all(torch.isfinite(torch.tensor(v)).all() for k, v in expected.items() if isinstance(v, list))


def modeling_source(cls) -> str:
    return inspect.getsource(inspect.getmodule(getattr(tf, cls)))


def keys_of(cls, config_cls, config) -> list[str]:
    keys = set(inspect.signature(getattr(tf, config_cls).__init__).parameters) | set(config.to_dict())
    keys |= set(re.findall(r"config\.([a-z]\w*)", modeling_source(cls)))
    keys |= set(re.findall(r'getattr\((?:self\.)?config, "(\w+)"', modeling_source(cls)))
    keys -= SKIP | (set(tf.PretrainedConfig().to_dict()) - {"tie_word_embeddings"}) | {"self", "kwargs"}
    return sorted(k for k in keys if not k.startswith("_") and not callable(getattr(config, k, None)))


def literals(cls, key) -> list[str]:
    """The words that the modeling file compares a key with."""
    out = []
    for line in modeling_source(cls).splitlines():
        if key in line and ("==" in line or " in " in line or "!=" in line):
            out += re.findall(r'"([\w-]+)"', line)
    return [w for w in dict.fromkeys(out) if w != key]


def values(cls, key, have) -> list:
    if "layer_types" in key:
        n = len(have or []) or 2
        return [[FULL, SLIDE] * n, [SLIDE, FULL] * n, [SLIDE] * n, [FULL] * n]
    if key in ("rope_scaling", "rope_parameters"):
        return [None, *ROPES]
    if isinstance(have, bool):
        return [not have]
    if isinstance(have, int):
        return [v for v in (have + 1, have * 2, have - 1, 1, 3, 6) if v and not (re.search("position|max_seq", key) and v < make.LENGTH)]
    if isinstance(have, float):
        return [have * 1.7 + 0.1, have * 0.4, 1.0] + ([] if re.search("multiplier|scal|clip|cap", key) else [0.0])
    if isinstance(have, str):
        return ACTIVATIONS if have in tf.activations.ACT2FN else literals(cls, key)
    if isinstance(have, (list, tuple)):
        return [list(have)[::-1], [], list(have)[:1]]
    if isinstance(have, dict):
        return []
    return [True, 6, 0.5, 12] + (ACTIVATIONS[:2] if "act" in key else []) + literals(cls, key)


def write(out, name, model, expected, drop=None) -> None:
    folder = out / re.sub(r"[^\w=,.-]", "_", name)[:120]
    shutil.rmtree(folder, ignore_errors=True)
    model.half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    if drop:
        config.pop(drop, None)
    path.write_text(json.dumps(config, indent=1) + "\n")
    if ((config.get("rope_scaling") or {}).get("rope_type") or "") in ("dynamic", "longrope"):
        expected = {**expected, "whole": True}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


def perturb(name, table, outputs, out, only_list) -> tuple[int, int]:
    cls, config_cls, params, *rest = table[name]
    base_model, base = compute(outputs, table[name])
    tried = kept = 0
    for key in keys_of(cls, config_cls, base_model.config):
        have = getattr(base_model.config, key, None)
        default = inspect.signature(getattr(tf, config_cls).__init__).parameters.get(key)
        changes = [(v, None) for v in values(cls, key, params.get(key, have))]
        if key in params and default is not None and default.default is not inspect.Parameter.empty and not (isinstance(default.default, int) and default.default > 200):
            changes.append((default.default, key))
        if key not in params:
            changes.append((inspect.Parameter.empty, key))
        seen = []
        for value, drop in changes:
            if value in seen and not drop or value is not inspect.Parameter.empty and value == have and not drop:
                continue
            seen.append(value)
            tried += 1
            new = {k: v for k, v in params.items() if k not in STATED_IN.get(key, (key,))} if drop else {**params, key: value}
            try:
                model, expected = compute(outputs, (cls, config_cls, new, *rest))
                if not sane(expected) or drop is None and not differs(base, expected):
                    continue
            except (Exception, KeyboardInterrupt):  # transformers refuses it too
                continue
            kept += 1
            label = f"{name},{key}={'-' if drop else json.dumps(value)}"
            if only_list:
                print(label)
                continue
            try:
                write(out, label, model, expected, drop)
            except Exception as e:
                print(f"{label}: not written: {type(e).__name__} {str(e)[:120]}", flush=True)
                kept -= 1
    return tried, kept


def main() -> int:
    ap = argparse.ArgumentParser()
    ap.add_argument("out", type=pathlib.Path)
    ap.add_argument("names", nargs="*")
    ap.add_argument("--list", action="store_true")
    a = ap.parse_args()
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, signal.default_int_handler)  # becomes a KeyboardInterrupt
    tf.logging.set_verbosity_error()
    add_breadth()
    for table, outputs in make.TABLES:
        for name in list(table):
            if a.names and name not in a.names:
                continue
            try:
                tried, kept = perturb(name, table, outputs, a.out, a.list)
            except Exception as e:  # one model must not hide the others
                print(f"{name:28s} FAIL {type(e).__name__}: {str(e)[:200]}", flush=True)
                continue
            print(f"{name:28s} {tried} changes, {kept} kept", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
