"""The changes of a config.json: which keys, and to what."""

import copy
import dataclasses
import inspect
import json
import re

REMOVED = object()
ACTIVATIONS = ["relu", "gelu", "gelu_new", "silu", "quick_gelu", "relu2", "tanh", "gelu_pytorch_tanh"]
SCALINGS = [
    {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "dynamic", "factor": 4.0},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8},
    {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 10000.0},
]
YARN = {"factor": 4.0, "original_max_position_embeddings": 16, "attention_factor": 0.7, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 0.7, "mscale_all_dim": 0.9, "truncate": True}
LONG = {"factor": 4.0, "original_max_position_embeddings": 16, "attention_factor": 0.7}
ROPE = {"rope_theta": 10000.0, "partial_rotary_factor": 1.0, "rope_type": "default", "type": "default", "factor": 4.0}  # what a section may have that does not state it,
OF_TYPE = {"yarn": YARN, "longrope": LONG, "su": LONG}  # and what more by its type
LAYERS = ["full_attention", "sliding_attention", "chunked_attention", "linear_attention", "conv", "sparse", "dense", "moe", "mlp", "hybrid"]
# What says how to run, to train or to generate, what other files say better, and other architectures.
WITHOUT = {"model_type", "architectures", "transformers_version", "torch_dtype", "dtype", "name_or_path", "return_dict", "output_hidden_states", "output_attentions", "quantization_config", "auto_map",
           "id2label", "label2id", "num_labels", "problem_type", "pruned_heads", "gradient_checkpointing", "use_return_dict", "tp_plan", "pp_plan", "attn_implementation", "experts_implementation",
           "vision_config", "audio_config", "talker_config", "code2wav_config", "per_layer_config", "is_heterogeneous", "sub_configs", "attribute_map", "has_no_defaults_at_init"}
TRAINING = re.compile("dropout|drop$|layerdrop|initializer|init_std|aux_loss")  # tried once
ACTIVATION = re.compile("(^|_)(act|activation)(_|$)")
WORDS = re.compile(r'"([a-zA-Z][\w-]*)"')


def source_of(cls) -> str:
    """The modeling file of a class and the configuration file beside it."""
    return inspect.getsource(inspect.getmodule(cls)) + inspect.getsource(inspect.getmodule(cls.config_class))


def keys_of(cls, section: dict, config, text: bool) -> list[str]:
    """The keys of a section of config.json: those that it has, those of the configuration's class and its other names for
    them, and those that the code reads."""
    source = source_of(cls)
    keys = set(section) | {f.name for f in dataclasses.fields(config)} | set(config.to_dict()) | set(config.attribute_map)
    if text:
        keys |= set(re.findall(r'kwargs\.(?:pop|get|setdefault)\("(\w+)"', source))
        keys |= set(re.findall(r"config\.([a-z]\w*)", source)) | set(re.findall(r'getattr\((?:self\.)?config, "(\w+)"', source))
        keys |= {"rope_theta", "rope_scaling", "partial_rotary_factor"} if hasattr(config, "rope_parameters") else set()
    inner = {k for k, v in vars(config).items() if hasattr(v, "to_dict")}
    methods = {k for k in keys if callable(getattr(type(config), k, None))}
    return sorted(k for k in keys - WITHOUT - inner - methods if not k.startswith("_") or k in section)


def value_of(config, key: str):
    """The value in a configuration, whether or not layers have values of their own."""
    try:
        return getattr(config, key, None)
    except Exception:
        return vars(config).get(key)


def words_near(cls, key: str) -> list[str]:
    """The words that the code compares a key with."""
    out = []
    for line in source_of(cls).splitlines():
        if key in line and ("==" in line or " in " in line or "!=" in line or "Literal" in line):
            out += WORDS.findall(line)
    return [w for w in dict.fromkeys(out) if w != key][:6]


def numbers(have) -> list:
    if isinstance(have, int):
        return [have + 1, have * 2, have // 2, 0]
    if 0 < abs(have) < 1e-3:
        return [have * 100, 0.1]
    return [have * 2, have / 2, have + 0.1, 0.0] if abs(have) < 10 else [have * 2, have / 2, 0.0]


def elements(cls, key: str, have: list) -> list:
    """Lists with one element changed, and the list turned around."""
    out = []
    for i in sorted({0, len(have) // 2, len(have) - 1}) if have else []:
        for x in values(cls, key, have[i])[:3 if isinstance(have[i], (int, float)) else None]:
            out.append([*have[:i], x, *have[i + 1:]])
    return out + [have[::-1], have[:-1]]


def values(cls, key: str, have) -> list:
    """What a key's value may be changed to."""
    if isinstance(have, bool):
        return [not have]
    if isinstance(have, (int, float)):
        return numbers(have)
    if isinstance(have, str):
        if have in ACTIVATIONS or ACTIVATION.search(key):
            return ACTIVATIONS
        if have in LAYERS:
            return LAYERS
        return words_near(cls, key)
    if isinstance(have, (list, tuple)):
        return elements(cls, key, list(have))
    if isinstance(have, dict):
        return [{}]
    out = [True, 6, 0.5, *words_near(cls, key)]
    if ACTIVATION.search(key):
        out += ACTIVATIONS[:2]
    if re.search("layer|type|pattern|indices", key):
        out += [[0, 1], [1, 0], ["sliding_attention", "full_attention"], [True, False]]
    return out


def rope_changes(cls, path: tuple, have: dict | None, config) -> list:
    """The changes of a section of rope's parameters."""
    out = [(path, v) for v in (None, REMOVED, *SCALINGS)]
    if not isinstance(have, dict):
        return out
    nested = [k for k, v in have.items() if isinstance(v, dict)]
    for k in nested:
        out += rope_changes(cls, (*path, k), have[k], config)
    if nested:
        return out + [(path, copy.deepcopy(have[k])) for k in nested]
    for kind in SCALINGS:
        out.append((path, {**have, **{k: v for k, v in kind.items() if k == "rope_type" or k not in have}}))
    more = {**ROPE, **OF_TYPE.get(have.get("rope_type") or have.get("type"), {})}
    for key in sorted({*have, *more}):
        now = have.get(key, more.get(key))
        tried = [k["rope_type"] for k in SCALINGS] if key in ("rope_type", "type") else values(cls, key, now)
        if key not in have:
            tried = [now, *tried]
        out += [((*path, key), v) for v in (*tried, None, REMOVED)]
    return out


def section_changes(cls, path: tuple, section: dict, config, text: bool) -> list:
    out = []
    for key in keys_of(cls, section, config, text):
        if TRAINING.search(key):
            out.append(((*path, key), 0.3))
            continue
        have, here = section.get(key, value_of(config, key)), (*path, key)
        if key in ("rope_parameters", "rope_scaling"):
            out += rope_changes(cls, here, have if key in section else None, config)
            continue
        if isinstance(have, dict) and key in section:
            for inner, v in have.items():
                out += [((*here, inner), x) for x in (*values(cls, inner, v), None, REMOVED)]
        out += [(here, v) for v in values(cls, key, have)]
        if key not in section:  # its default, stated; and beside another name of the same
            out.append((here, have))
        out += [(here, None), (here, REMOVED)]
    for key, value in (("rms_norm_eps", 0.1), ("sliding_window", 3), ("num_key_value_heads", 1)):
        if value_of(config, key) is not None:
            out.append(((*path, "per_layer_config"), {"0": {key: value}}))
    return out


def changes(cls, file: dict, config) -> list[tuple[tuple, object]]:
    """All changes of a config.json, each a path and a value, REMOVED to leave the key out."""
    text = config.get_text_config()
    out = section_changes(cls, (), file, config, text is config)
    for key, value in file.items():
        if isinstance(value, dict) and getattr(config, key, None) is text:
            out += section_changes(cls, (key,), value, text, True)
    seen, distinct = set(), []
    for path, value in out:
        if value is REMOVED and not held(file, path) or value is not REMOVED and not plain(value) or held(file, path) and value is not REMOVED and same(at(file, path), value):
            continue
        name = label(path, value)
        if name not in seen:
            seen.add(name)
            distinct.append((path, value))
    return distinct


def other_form(file: dict, config) -> list[tuple[tuple, object]]:
    """The changes that write rope's parameters as transformers 4 does, or as transformers 5 does if the file has the older
    form; none for parameters by layer type and for models without."""
    text, path = config.get_text_config(), ()
    for key, value in file.items():
        if isinstance(value, dict) and text is not config and getattr(config, key, None) is text:
            path, file = (key,), value
    now = getattr(text, "rope_parameters", None)
    if not now or any(isinstance(v, dict) for v in now.values()):
        return []
    old = {"rope_theta": now["rope_theta"], "partial_rotary_factor": now.get("partial_rotary_factor"), "rope_scaling": {k: v for k, v in now.items() if k not in ("rope_theta", "partial_rotary_factor")}}
    if now["rope_type"] == "default":
        del old["rope_scaling"]
    if "rope_parameters" in file:
        return [((*path, "rope_parameters"), REMOVED), *(((*path, k), v) for k, v in old.items() if v is not None)]
    return [*(((*path, k), REMOVED) for k in ("rope_theta", "rope_scaling", "partial_rotary_factor", "rotary_pct", "rotary_emb_base") if k in file), ((*path, "rope_parameters"), now)]


def of_rope(path: tuple) -> bool:
    return any(re.search("rope|rotary|original_max", key) for key in path)


def plain(value) -> bool:
    try:
        json.dumps(value, allow_nan=False)
        return True
    except (TypeError, ValueError):
        return False


def same(a, b) -> bool:
    return type(a) is type(b) and a == b


def held(file: dict, path: tuple) -> bool:
    for key in path[:-1]:
        file = file.get(key)
        if not isinstance(file, dict):
            return False
    return path[-1] in file


def at(file: dict, path: tuple):
    for key in path:
        file = file[key]
    return file


def changed(file: dict, path: tuple, value) -> dict:
    """A copy of a config.json with a change."""
    out = inner = copy.deepcopy(file)
    for key in path[:-1]:
        inner = inner[key]
    if value is REMOVED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = copy.deepcopy(value)
    return out


def label(path: tuple, value) -> str:
    return ".".join(path) + ("-" if value is REMOVED else "=" + json.dumps(value))
