"""Makes the folders beside it: tiny models with draft layers, and a float64 reference of what the layers compute.

    python draft_layers.py [name …]        needs tools/gen/reference/requirements.txt

transformers loads no draft layer. The reference is written here from the formulas of DeepSeek-V3 (arXiv:2412.19437, §2.2),
of Qwen3-Next's published layer, and of EAGLE-3 (Li et al. 2025, arXiv:2503.01840, §3.1). Decoder layers are those of
transformers. Norms of transformers compute in float32.
"""

import copy
import json
import os
import sys
import zlib

import torch
import transformers as tf
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "families"), os.path.join(HERE, "..", "..", "..", "tools", "gen", "reference")]
import hybrids  # noqa: E402
import make  # noqa: E402
import sparse  # noqa: E402
import ties  # noqa: E402

FULL, LINEAR = "full_attention", "linear_attention"
LENGTH = 21
TOKENS = [7, 11, 3]  # drafted in a row after the ids

DEEPSEEK = hybrids.latent(n_group=2, topk_group=1, first_k_dense_replace=1, q_lora_rank=8, num_experts=None, num_experts_per_token=None, num_shared_experts=None, n_routed_experts=4, num_hidden_layers=2)
GLM = hybrids.llm(n_routed_experts=4, n_shared_experts=1, moe_intermediate_size=12, num_experts_per_tok=2, first_k_dense_replace=1, head_dim=8, use_qk_norm=True, attention_bias=True, num_hidden_layers=2)
HYBRID = [LINEAR, FULL]

OWN = {"layer_types": FULL, "mlp_layer_types": "sparse", "indexer_types": "full"}  # of the layer for multi-token prediction

MTP = {
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", DEEPSEEK),
    "glm4_moe": ("Glm4MoeForCausalLM", "Glm4MoeConfig", GLM),
    "deepseek_v32": ("DeepseekV32ForCausalLM", "DeepseekV32Config", dict(sparse.MLA, num_hidden_layers=2, first_k_dense_replace=1, max_position_embeddings=128)),
    "qwen3_next": ("Qwen3NextForCausalLM", "Qwen3NextConfig", hybrids.delta(norm_topk_prob=True, **hybrids.EXPERTS, num_hidden_layers=2, layer_types=HYBRID)),
    "qwen3_5": ("Qwen3_5ForCausalLM", "Qwen3_5TextConfig", hybrids.delta(num_hidden_layers=2, layer_types=HYBRID, tie_word_embeddings=True)),
}


def tensor(seed, name, *shape):
    g = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
    x = torch.randn(*shape, generator=g)
    x = x * 1.5 / shape[-1] ** 0.5 if len(shape) > 1 else x * 0.3 + 1
    return x.half()


def ids_of(vocab, length=LENGTH):
    return [(7 * i * i + 3 * i + 5) % vocab for i in range(length)]


def deeper(cls, config_cls, params, vocab=None):
    """A model with one layer more than it has: the layer for multi-token prediction."""
    params = {k: v for k, v in params.items() if v is not None}
    n = params["num_hidden_layers"]
    more = {**params, "num_hidden_layers": n + 1}
    for key, own in OWN.items():
        if key in params:
            more[key] = params[key] + [own]
    if vocab:
        more["vocab_size"] = vocab
    return make.build(cls, config_cls, more), n


def norm(x, weight, eps, base):
    x = x.float()  # as transformers' norms
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return ((base + weight.float()) * x).double()


def mtp_tensors(name, n, width, vocab, own, seed=0):
    """The tensors of the layer besides those of a decoder layer: standard name, stored name, value."""
    if name.startswith("qwen"):
        at = {"enorm": "mtp.pre_fc_norm_embedding", "hnorm": "mtp.pre_fc_norm_hidden", "in": "mtp.fc", "norm": "mtp.norm"}
    else:
        at = {k: f"model.layers.{n}.{v}" for k, v in (("enorm", "enorm"), ("hnorm", "hnorm"), ("in", "eh_proj"), ("norm", "shared_head.norm"))}
        if own:
            at |= {"head": f"model.layers.{n}.shared_head.head", "embed": f"model.layers.{n}.embed_tokens"}
    shapes = {"in": (width, 2 * width), "head": (vocab, width), "embed": (vocab, width)}
    return {k: (v + ".weight", tensor(seed, v, *shapes.get(k, (width,)))) for k, v in at.items()}


@torch.no_grad()
def mtp(name, spec=None, own=True, seed=0, out=None):
    cls, config_cls, params = spec or MTP[name]
    model, n = deeper(cls, config_cls, params)
    out = out or os.path.join(HERE, name)
    make.save(os.path.basename(out), copy.deepcopy(model), {}, os.path.dirname(out))
    vocab, width = model.config.vocab_size, model.config.hidden_size
    extra = mtp_tensors(name, n, width, vocab, own, seed)
    stored = load_file(os.path.join(out, "model.safetensors"))
    if name.startswith("qwen"):
        stored = {k.replace(f"model.layers.{n}.", "mtp.layers.0."): v for k, v in stored.items()}
    stored |= dict(extra.values())
    save_file({k: v.contiguous() for k, v in stored.items()}, os.path.join(out, "model.safetensors"))
    path = os.path.join(out, "config.json")
    config = json.load(open(path))
    config["num_hidden_layers"] = n
    for key in OWN:
        if config.get(key):
            config[key] = config[key][:n]
    if name.startswith("qwen"):
        config["mtp_num_hidden_layers"] = 1
    else:
        config["num_nextn_predict_layers"] = 1
    json.dump(config, open(path, "w"), indent=1, sort_keys=True)
    with ties.watch(model) as tied:
        expected = mtp_reference(model.double(), n, {k: v.double() for k, (_, v) in extra.items()}, base=1 if name.startswith("qwen") else 0)
    if tied:
        raise RuntimeError(tied[0])
    finish(out, expected)


def mtp_reference(model, n, w, base):
    c = model.config
    c._experts_implementation = "eager"  # the others take no float64
    layers, first = model.model.layers, torch.nn.ModuleList(list(model.model.layers)[:n])
    block = layers[n]
    model.model.layers, c.num_hidden_layers = first, n
    for key in OWN:
        if getattr(c, key, None):
            setattr(c, key, list(getattr(c, key))[:n])
    ids = ids_of(c.vocab_size)
    h = model.model(torch.tensor([ids]), use_cache=False).last_hidden_state[0]
    for part in block.modules():
        if hasattr(part, "layer_idx"):
            part.layer_idx = 0
    model.model.layers, c.num_hidden_layers = torch.nn.ModuleList([block]), 1
    for key, own in OWN.items():
        if getattr(c, key, None):
            setattr(c, key, [own])
    model.model.norm = torch.nn.Identity()
    embed, head = w.get("embed", model.model.embed_tokens.weight), w.get("head", model.lm_head.weight)
    follow = ids[1:]
    rows = []
    for token in TOKENS:
        follow.append(token)
        e, s = norm(embed[torch.tensor(follow)], w["enorm"], c.rms_norm_eps, base), norm(h, w["hnorm"], c.rms_norm_eps, base)
        x = torch.cat([e, s], -1) @ w["in"].T
        z = norm(model.model(inputs_embeds=x[None], use_cache=False).last_hidden_state[0], w["norm"], c.rms_norm_eps, base)
        logits = z @ head.T
        rows = rows or [torch.cat([logits[i], z[i]]) for i in (0, len(ids) // 2)]
        rows.append(torch.cat([logits[-1], z[-1]]))
        h = torch.cat([h, z[-1:]])
    return {"ids": ids, "tokens": TOKENS, "rows": make.rows(rows)}


def finish(out, expected):
    with open(os.path.join(out, "expected.json"), "w") as f:
        json.dump(expected, f)
        f.write("\n")


EAGLE = {
    "eagle3": dict(target=hybrids.llm(num_hidden_layers=7, num_attention_heads=4, num_key_value_heads=2), head=dict(hidden_size=24, intermediate_size=40, num_attention_heads=2, num_key_value_heads=1), vocab=32, names="midlayer"),
    "eagle3_wide": dict(target=hybrids.llm(num_hidden_layers=4, tie_word_embeddings=True), head=dict(hidden_size=16, intermediate_size=24, num_attention_heads=4, num_key_value_heads=4, head_dim=6, rope_theta=500.0),
                        vocab=None, names="layers.0", taps=[0, 2, 3], norm_before_residual=True, own_embed=True),
}


def eagle_tensors(spec, width, vocab, seed):
    h, f, d = spec["head"]["hidden_size"], spec["head"]["intermediate_size"], spec["head"].get("head_dim") or spec["head"]["hidden_size"] // spec["head"]["num_attention_heads"]
    q, kv = spec["head"]["num_attention_heads"] * d, spec["head"]["num_key_value_heads"] * d
    columns, at = spec["vocab"] or vocab, spec["names"]
    shapes = {"fc": (h, 3 * width), "norm": (h,), "lm_head": (columns, h), f"{at}.input_layernorm": (h,), f"{at}.hidden_norm": (h,), f"{at}.post_attention_layernorm": (h,),
              f"{at}.self_attn.q_proj": (q, 2 * h), f"{at}.self_attn.k_proj": (kv, 2 * h), f"{at}.self_attn.v_proj": (kv, 2 * h), f"{at}.self_attn.o_proj": (h, q),
              f"{at}.mlp.gate_proj": (f, h), f"{at}.mlp.up_proj": (f, h), f"{at}.mlp.down_proj": (h, f)}
    if spec.get("own_embed"):
        shapes["embed_tokens"] = (vocab, h)
    if spec["head"].get("attention_bias"):
        shapes |= {f"{at}.self_attn.{p}_proj.bias": (n,) for p, n in zip("qkvo", (q, kv, kv, h))}
    if spec["head"].get("mlp_bias"):
        shapes |= {f"{at}.mlp.{p}_proj.bias": (n,) for p, n in zip(("gate", "up", "down"), (f, f, h))}
    w = {k if k.endswith(".bias") else k + ".weight": tensor(seed, k, *s) for k, s in shapes.items()}
    if spec["vocab"]:
        tokens = torch.randperm(vocab, generator=torch.Generator().manual_seed(6 + seed))[:columns].sort().values
        w["d2t"] = tokens - torch.arange(columns)
        w["t2d"] = torch.zeros(vocab, dtype=torch.bool).index_fill(0, tokens, True)
    return w


@torch.no_grad()
def eagle(name, spec=None, seed=0, out=None):
    spec = spec or EAGLE[name]
    out = out or os.path.join(HERE, name)
    model = make.build(*spec.get("model", ("LlamaForCausalLM", "LlamaConfig")), spec["target"])
    make.save(os.path.basename(out), copy.deepcopy(model), {}, os.path.dirname(out))
    target, vocab = model.config, model.config.vocab_size
    w = eagle_tensors(spec, target.hidden_size, vocab, seed)
    config = {**dict(architectures=["LlamaForCausalLMEagle3"], model_type="llama", num_hidden_layers=1, vocab_size=vocab, draft_vocab_size=spec["vocab"] or vocab, hidden_act="silu", rms_norm_eps=1e-5,
                     max_position_embeddings=128, tie_word_embeddings=False, target_hidden_size=target.hidden_size), **spec["head"]}
    if "taps" in spec and spec.get("form") != "speculators":
        config["eagle_config"] = dict(eagle_aux_hidden_state_layer_ids=[i - 1 for i in spec["taps"]])
    if spec.get("norm_before_residual"):
        config["norm_before_residual"] = True
    stored = config
    if spec.get("form") == "speculators":
        layer = {k: config[k] for k in ("model_type", "num_hidden_layers", "vocab_size", "hidden_act", "rms_norm_eps", "max_position_embeddings", *spec["head"])}
        stored = dict(architectures=["Eagle3DraftModel"], speculators_model_type="eagle3", draft_vocab_size=config["draft_vocab_size"], target_hidden_size=None, transformer_layer_config=layer,
                      norm_before_residual=bool(spec.get("norm_before_residual")), eagle_aux_hidden_state_layer_ids=spec.get("taps"))
    os.makedirs(os.path.join(out, "head"))
    save_file(w, os.path.join(out, "head", "model.safetensors"))
    json.dump(stored, open(os.path.join(out, "head", "config.json"), "w"), indent=1, sort_keys=True)
    finish(out, eagle_reference(spec, model.double(), {k: v.double() if v.is_floating_point() else v for k, v in w.items()}, config))


def eagle_reference(spec, model, w, config):
    at, eps = spec["names"], config["rms_norm_eps"]
    ids = ids_of(config["vocab_size"])
    n = model.config.num_hidden_layers
    states = model.model(torch.tensor([ids]), use_cache=False, output_hidden_states=True).hidden_states  # states[i] is the input of layer i
    h = torch.cat([states[i][0] for i in spec.get("taps", [2, n // 2, n - 3])], -1) @ w["fc.weight"].T
    embed = w.get("embed_tokens.weight", model.model.embed_tokens.weight)
    hidden_norm = lambda x: norm(x, w[f"{at}.hidden_norm.weight"], eps, 0)
    follow, rows = ids[1:], []
    for token in TOKENS:
        follow.append(token)
        e = norm(embed[torch.tensor(follow)], w[f"{at}.input_layernorm.weight"], eps, 0)
        residual = hidden_norm(h) if spec.get("norm_before_residual") else h
        x = residual + eagle_attention(torch.cat([e, hidden_norm(h)], -1), w, at, config)
        m = norm(x, w[f"{at}.post_attention_layernorm.weight"], eps, 0)
        linear = lambda y, p: y @ w[f"{at}.mlp.{p}_proj.weight"].T + w.get(f"{at}.mlp.{p}_proj.bias", 0)
        z = x + linear(tf.activations.ACT2FN[config["hidden_act"]](linear(m, "gate")) * linear(m, "up"), "down")
        logits = norm(z, w["norm.weight"], eps, 0) @ w["lm_head.weight"].T
        rows = rows or [torch.cat([logits[i], z[i]]) for i in (0, len(ids) // 2)]
        rows.append(torch.cat([logits[-1], z[-1]]))
        h = torch.cat([h, z[-1:]])
    return {"ids": ids, "tokens": TOKENS, "rows": make.rows(rows)}


def eagle_attention(x, w, at, config):
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    d = config.get("head_dim") or config["hidden_size"] // heads
    t = len(x)
    linear = lambda y, p: y @ w[f"{at}.self_attn.{p}_proj.weight"].T + w.get(f"{at}.self_attn.{p}_proj.bias", 0)
    q, k, v = (linear(x, p).view(t, -1, d).transpose(0, 1) for p in "qkv")
    frequencies = config.get("rope_theta", 10000.0) ** (-torch.arange(0, d, 2).double() / d)
    if scaling := config.get("rope_scaling"):
        frequencies = frequencies / scaling["factor"]  # linear
    angle = torch.arange(t).double()[:, None] * frequencies
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    turn = lambda y: y * cos + torch.cat([-y[..., d // 2:], y[..., :d // 2]], -1) * sin
    q, k = turn(q), turn(k).repeat_interleave(heads // kv, 0)
    scores = q @ k.transpose(1, 2) / d ** 0.5 + torch.full((t, t), float("-inf"), dtype=torch.double).triu(1)
    a = (scores.softmax(-1) @ v.repeat_interleave(heads // kv, 0)).transpose(0, 1).reshape(t, -1)
    return linear(a, "o")


def main():
    tf.logging.set_verbosity_error()
    for name in sys.argv[1:] or [*MTP, *EAGLE]:
        (mtp if name in MTP else eagle)(name)


if __name__ == "__main__":
    main()
