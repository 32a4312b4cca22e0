"""Makes models that transformers does not have, with the logits that the float64 formulas below compute for them.

    python make.py        needs torch, safetensors

Each formula is written from the paper or the published code that it names, token by token, without chunks or caches, and
shares nothing with iflowc. Models with a family are written to ../families; the others combine modules of several
families, and a model spec beside their folder describes them.
"""

import json
import math
import os
import shutil
import zlib

import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
VOCAB, LENGTH, WIDTH, FFN = 40, 41, 16, 24
EPS = 1e-5


class Weights:
    """Random stored tensors, made when they are first read, in f16."""

    def __init__(self, seed):
        self.seed, self.stored = seed, {}

    def __call__(self, name, *shape, scale=None, mean=0.0):
        if name not in self.stored:
            g = torch.Generator().manual_seed(zlib.crc32(f"{self.seed}:{name}".encode()))
            x = torch.randn(shape, generator=g)
            x = x * (scale if scale is not None else 1.5 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.3) + mean
            self.stored[name] = x.half()
        return self.stored[name].double()


def heads_of(x, n):
    return x.view(len(x), n, -1)


def rms(x, w, eps=EPS):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w


def layer_norm(x, w, b, eps=EPS):
    x = x - x.mean(-1, keepdim=True)
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w + b


def rope(x, n, dim, theta=10000.0):
    """Su et al. 2021; halves of the first dim channels of each head."""
    x = heads_of(x, n).clone()
    a, b = x[..., : dim // 2].clone(), x[..., dim // 2 : dim].clone()
    angle = torch.arange(len(x)).double()[:, None] * theta ** (-torch.arange(0, dim, 2).double() / dim)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    x[..., : dim // 2], x[..., dim // 2 : dim] = a * cos - b * sin, b * cos + a * sin
    return x.flatten(1)


def shift(x):
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


def conv(x, w, b=0.0):
    """w: [D, 1, W]; the last tap is the token's own."""
    taps, out = w.shape[-1], torch.zeros_like(x)
    for j in range(taps):
        back = taps - 1 - j
        out[back:] += w[:, 0, j] * x[: len(x) - back]
    return out + b


def softmax_attention(q, k, v, n, kv, window=0):
    q, k, v = heads_of(q, n), heads_of(k, kv).repeat_interleave(n // kv, 1), heads_of(v, kv).repeat_interleave(n // kv, 1)
    s = torch.einsum("thd,shd->hts", q, k) / math.sqrt(q.shape[-1])
    t = torch.arange(len(q))
    hidden = t[None] > t[:, None]
    if window:
        hidden |= t[None] <= t[:, None] - window
    return torch.einsum("hts,shd->thd", s.masked_fill(hidden, -math.inf).softmax(-1), v).flatten(1)


def recurrence(q, k, v, decay=None, beta=None, delta=False, scale=1.0):
    """Linear attention with a matrix S [K, V] per head: S = exp(decay)·S, S += beta·k·(v − Sᵀk or v)ᵀ, y = Sᵀq·scale."""
    steps, n, keys = q.shape
    s, out = torch.zeros(n, keys, v.shape[-1]).double(), []
    for t in range(steps):
        if decay is not None:
            d = decay[t] if decay.dim() > 1 else decay
            s = s * d.exp().reshape(n, -1, 1)
        u = v[t] - torch.einsum("hk,hkv->hv", k[t], s) if delta else v[t]
        s = s + torch.einsum("hk,hv->hkv", k[t], u * (1 if beta is None else beta[t][:, None]))
        out.append(torch.einsum("hk,hkv->hv", q[t], s) * scale)
    return torch.stack(out)


def alibi(n):
    return torch.tensor([2 ** (-8 * (i + 1) / n) for i in range(n)]).double()  # n is a power of two


def gqa(W, at, h, n=2, kv=1, dim=8, window=0, rotary=8, gate=0, names=("q_proj", "k_proj", "v_proj", "o_proj")):
    q, k, v = (h @ W(f"{at}{name}.weight", size * dim, WIDTH).T for name, size in zip(names, (n, kv, kv)))
    o = softmax_attention(rope(q, n, rotary), rope(k, kv, rotary), v, n, kv, window)
    if gate:  # rows of the gate's matrix: one per channel, or per head
        o = (heads_of(o, n) * torch.sigmoid(heads_of(h @ W(at + "g_proj.weight", gate, WIDTH).T + W(at + "g_proj.bias", gate), n))).flatten(1)
    return o @ W(f"{at}{names[3]}.weight", WIDTH, n * dim).T


def linear(W, at, h, n=2, dim=6, vdim=5, taps=3, decay="head", act="silu", qk="l2", gate="silu", before=False, delta=True):
    """Gated DeltaNet (Yang et al. 2025) and its relatives, by their options."""
    q, k, v = (h @ W(f"{at}{name}_proj.weight", n * d, WIDTH).T for name, d in (("q", dim), ("k", dim), ("v", vdim)))
    x = conv(torch.cat([q, k, v], 1), W(at + "conv1d.weight", n * (2 * dim + vdim), 1, taps))
    if act:
        x = getattr(torch.nn.functional, act)(x)
    q, k, v = (heads_of(y, n) for y in x.split([n * dim, n * dim, n * vdim], 1))
    if qk == "l2":
        q, k = (y / torch.sqrt((y * y).sum(-1, keepdim=True) + 1e-6) for y in (q, k))
    if qk == "rms":
        q, k = (rms(y, W(f"{at}{name}_norm.weight", dim, scale=0.3, mean=1)) for y, name in ((q, "q"), (k, "k")))
    d = beta = None
    if decay == "head":
        d = -W(at + "A_log", n, mean=-1).exp() * torch.nn.functional.softplus(h @ W(at + "a_proj.weight", n, WIDTH).T + W(at + "dt_bias", n))
    if decay == "retention":  # Sun et al. 2023, eq. 8
        d = torch.log(1 - 2.0 ** (-5 - torch.arange(n).double()))
    if delta:
        beta = torch.sigmoid(h @ W(at + "b_proj.weight", n, WIDTH).T)
    y = recurrence(q, k, v, d, beta, delta, 1 / math.sqrt(dim))
    z = heads_of(h @ W(at + "g_proj.weight", n * vdim, WIDTH).T, n) if gate else None
    z = {"silu": lambda: torch.nn.functional.silu(z), "sigmoid": lambda: torch.sigmoid(z), None: lambda: 1.0}[gate]()
    w = W(at + "o_norm.weight", vdim, scale=0.3, mean=1)
    normed = lambda y: rms(y, w)
    y = normed(y * z) if before else normed(y) * z
    return y.flatten(1) @ W(at + "o_proj.weight", WIDTH, n * vdim).T


def scan(W, at, h, width=20, state=4, rank=3):
    """Mamba (Gu and Dao 2023, algorithm 2)."""
    x, z = (h @ W(at + "in_proj.weight", 2 * width, WIDTH).T).chunk(2, 1)
    x = torch.nn.functional.silu(conv(x, W(at + "conv1d.weight", width, 1, 4), W(at + "conv1d.bias", width)))
    dt, b, c = (x @ W(at + "x_proj.weight", rank + 2 * state, width).T).split([rank, state, state], 1)
    dt = torch.nn.functional.softplus(dt @ W(at + "dt_proj.weight", width, rank).T + W(at + "dt_proj.bias", width))
    a, s, out = -W(at + "A_log", width, state, scale=0.5).exp(), torch.zeros(width, state).double(), []
    for t in range(len(x)):
        s = (dt[t][:, None] * a).exp() * s + (dt[t] * x[t])[:, None] * b[t]
        out.append(s @ c[t])
    y = (torch.stack(out) + W(at + "D", width, mean=1) * x) * torch.nn.functional.silu(z)
    return y @ W(at + "out_proj.weight", WIDTH, width).T


def ssd(W, at, h, n=4, dim=5, groups=2, state=6, gate="silu"):
    """Mamba-2 (Dao and Gu 2024, §7.1)."""
    width, bc = n * dim, groups * state
    z, xbc, dt = (h @ W(at + "in_proj.weight", 2 * width + 2 * bc + n, WIDTH).T).split([width, width + 2 * bc, n], 1)
    xbc = torch.nn.functional.silu(conv(xbc, W(at + "conv1d.weight", width + 2 * bc, 1, 4), W(at + "conv1d.bias", width + 2 * bc)))
    x, b, c = xbc.split([width, bc, bc], 1)
    x, b, c = heads_of(x, n), heads_of(b, groups).repeat_interleave(n // groups, 1), heads_of(c, groups).repeat_interleave(n // groups, 1)
    dt = torch.nn.functional.softplus(dt + W(at + "dt_bias", n))
    y = recurrence(c, b, x, dt * -W(at + "A_log", n, mean=-1).exp(), dt) + W(at + "D", n, mean=1)[:, None] * x
    y = y.flatten(1)
    if gate:
        y = y * getattr(torch.nn.functional, gate)(z)
    y = heads_of(y, groups)
    one = torch.ones(y.shape[-1]).double()
    y = rms(y, one).flatten(1) * W(at + "norm.weight", width, scale=0.3, mean=1)
    return y @ W(at + "out_proj.weight", WIDTH, width).T


def short_conv(W, at, h):
    """LFM2's block: a convolution between two gates."""
    b, c, x = (h @ W(at + "in_proj.weight", 3 * WIDTH, WIDTH).T).chunk(3, 1)
    return (c * conv(b * x, W(at + "conv.weight", WIDTH, 1, 3))) @ W(at + "out_proj.weight", WIDTH, WIDTH).T


def ffn(W, at, h):
    g, u = (h @ W(f"{at}{name}_proj.weight", FFN, WIDTH).T for name in ("gate", "up"))
    return (torch.nn.functional.silu(g) * u) @ W(at + "down_proj.weight", WIDTH, FFN).T


def llama_like(W, ids, layers):
    """Layers of pairs: functions of (W, prefix, normed input) for the mixers of a layer, and whether it has an FFN."""
    x = W("model.embed_tokens.weight", VOCAB, WIDTH, scale=0.7)[ids]
    one = dict(scale=0.3, mean=1)
    for i, (mixers, has_ffn) in enumerate(layers):
        at = f"model.layers.{i}."
        if mixers:
            h = rms(x, W(at + "input_layernorm.weight", WIDTH, **one))
            x = x + sum(f(W, at + name, h) for name, f in mixers)
        if has_ffn:
            x = x + ffn(W, at + "mlp.", rms(x, W(at + "post_attention_layernorm.weight", WIDTH, **one)))
    return rms(x, W("model.norm.weight", WIDTH, **one)) @ W("lm_head.weight", VOCAB, WIDTH).T


def rwkv7(W, ids, layers=3, n=2, dim=8, rank=4):
    """RWKV-7 (Peng et al. 2025, §4 and appendix H), with the tensor names of flash-linear-attention's RWKV7ForCausalLM."""

    def lora(at, x, act=lambda y: y, bias=True):
        y = act(x @ W(at + ".lora.0.weight", rank, WIDTH).T) @ W(at + ".lora.2.weight", n * dim, rank).T
        return y + W(at + ".lora.2.bias", n * dim) if bias else y

    def norm(at, x):
        return layer_norm(x, W(at + ".weight", WIDTH, scale=0.3, mean=1), W(at + ".bias", WIDTH))

    x = W("model.embeddings.weight", VOCAB, WIDTH, scale=0.7)[ids]
    first = None
    for i in range(layers):
        at = f"model.layers.{i}."
        if i == 0:
            x = norm(at + "pre_norm", x)
        h = norm(at + "attn_norm", x)
        delta = shift(h) - h
        xr, xw, xk, xv, xa, xg = (h + delta * W(f"{at}attn.x_{c}", 1, 1, WIDTH, scale=0.5)[0] for c in "rwkvag")
        r, k, v = (y @ W(f"{at}attn.{c}_proj.weight", n * dim, WIDTH).T for y, c in ((xr, "r"), (xk, "k"), (xv, "v")))
        w = -math.exp(-0.5) * torch.sigmoid(lora(at + "attn.w_lora", xw, torch.tanh))
        if i == 0:
            first = v
        else:
            v = v + (first - v) * torch.sigmoid(lora(at + "attn.v_lora", xv))
        a, g = torch.sigmoid(lora(at + "attn.a_lora", xa)), lora(at + "attn.g_lora", xg, torch.sigmoid, False)
        kk = heads_of(k * W(at + "attn.k_k", n * dim, mean=1), n)
        kk = kk / torch.clamp(kk.norm(dim=-1, keepdim=True), min=1e-12)
        k = k * (1 + (a - 1) * W(at + "attn.k_a", n * dim, mean=1))
        r, w, k, v, a = (heads_of(y, n) for y in (r, w, k, v, a))
        s, out = torch.zeros(n, dim, dim).double(), []  # [head, value, key]
        for t in range(len(x)):
            s = s * w[t].exp()[:, None] - torch.einsum("hvk,hk,hj->hvj", s, kk[t], kk[t] * a[t]) + torch.einsum("hv,hk->hvk", v[t], k[t])
            out.append(torch.einsum("hvk,hk->hv", s, r[t]))
        y = layer_norm(torch.stack(out), 1.0, 0.0, dim * EPS).flatten(1) * W(at + "attn.g_norm.weight", n * dim, scale=0.3, mean=1) + W(at + "attn.g_norm.bias", n * dim)
        y = y + ((r * k * W(at + "attn.r_k", n, dim, scale=0.5)).sum(-1, keepdim=True) * v).flatten(1)
        x = x + (y * g) @ W(at + "attn.o_proj.weight", WIDTH, n * dim).T
        h = norm(at + "ffn_norm", x)
        h = h + (shift(h) - h) * W(at + "ffn.x_k", WIDTH, scale=0.5)
        x = x + torch.relu(h @ W(at + "ffn.key.weight", FFN, WIDTH).T) ** 2 @ W(at + "ffn.value.weight", WIDTH, FFN).T
    return norm("model.norm", x) @ W("lm_head.weight", VOCAB, WIDTH).T


def ling_linear(W, ids, layers=5, group=2, n=2, dim=8, experts=4, top=2):
    """Ling and Ring linear 2.0: Lightning Attention-2 (Qin et al. 2024) with norms, rope and a gate, between layers of attention."""
    x, one = W("model.word_embeddings.weight", VOCAB, WIDTH, scale=0.7)[ids], dict(scale=0.3, mean=1)
    for i in range(layers):
        at = f"model.layers.{i}.attention."
        h = rms(x, W(f"model.layers.{i}.input_layernorm.weight", WIDTH, **one))
        full = (i + 1) % group == 0 or i >= layers // group * group
        kv = 1 if full else n
        q, k, v = (h @ W(at + "query_key_value.weight", (n + 2 * kv) * dim, WIDTH).T).split([n * dim, kv * dim, kv * dim], 1)
        q = rope(rms(heads_of(q, n), W(at + "query_layernorm.weight", dim, **one)).flatten(1), n, dim // 2)
        k = rope(rms(heads_of(k, kv), W(at + "key_layernorm.weight", dim, **one)).flatten(1), kv, dim // 2)
        if full:
            y = softmax_attention(q, k, v, n, kv)
        else:
            slope = -alibi(n) * (1 - (i - 1) / (layers - 1) + 1e-5)
            y = recurrence(heads_of(q, n), heads_of(k, n), heads_of(v, n), slope, scale=1 / math.sqrt(dim)).flatten(1)
            y = rms(heads_of(y, 2), torch.ones(n * dim // 2).double()).flatten(1) * W(at + "g_norm.weight", n * dim, **one)
            y = y * torch.sigmoid(h @ W(at + "g_proj.weight", n * dim, WIDTH).T)
        x = x + y @ W(at + "dense.weight", WIDTH, n * dim).T
        at = f"model.layers.{i}.mlp."
        h = rms(x, W(f"model.layers.{i}.post_attention_layernorm.weight", WIDTH, **one))
        if i == 0:
            x = x + ffn(W, at, h)
            continue
        score = torch.sigmoid(h @ W(at + "gate.weight", experts, WIDTH).T)
        best = (score + W(at + "gate.expert_bias", experts)).topk(top, -1).indices
        p = torch.zeros_like(score).scatter(-1, best, score.gather(-1, best))
        p = p / p.sum(-1, keepdim=True) * 1.5
        x = x + ffn(W, at + "shared_experts.", h) + sum(p[:, e : e + 1] * ffn(W, f"{at}experts.{e}.", h) for e in range(experts))
    return rms(x, W("model.norm.weight", WIDTH, **one)) @ W("lm_head.weight", VOCAB, WIDTH).T


def attn(**kw):
    return ("self_attn.", lambda W, at, h: gqa(W, at, h, **kw))


def with_options(name, f, **kw):
    return (name, lambda W, at, h: f(W, at, h, **kw))


LINEAR, SCAN, SSD = "linear_attn.", "mamba.", "mamba."
LLAMA = dict(model_type="llama", hidden_size=WIDTH, intermediate_size=FFN, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, rms_norm_eps=EPS, vocab_size=VOCAB, max_position_embeddings=128)
COMBINATIONS = {  # layers
    "gate_of_channels": [([attn(gate=16)], True), ([with_options("conv.", short_conv)], True)],
    "gate_of_heads": [([attn(gate=2)], True)],
    "retention": [([with_options(LINEAR, linear, decay="retention", act=None, qk="rms", gate="sigmoid", delta=False)], True)] * 2,
    "delta_net": [([with_options(LINEAR, linear, decay=None, gate=None)], True), ([attn(window=7)], True)],
    "six_mixers": [([with_options(SSD, ssd, gate="sigmoid")], True), ([with_options("conv.", short_conv)], False), ([with_options(LINEAR, linear, before=True)], True), ([], True), ([attn(window=7)], True), ([with_options(SCAN, scan)], False), ([attn()], True)],
    "ungated": [([with_options(SSD, ssd, gate=None)], False), ([], True), ([attn()], False)],
}
FAMILIES = {
    "rwkv7": (rwkv7, dict(model_type="rwkv7", hidden_size=WIDTH, intermediate_size=FFN, num_hidden_layers=3, head_dim=8, num_heads=2, norm_eps=EPS, norm_first=True, norm_bias=True, hidden_act="sqrelu", vocab_size=VOCAB, max_position_embeddings=128, tie_word_embeddings=False)),
    "bailing_moe_linear": (ling_linear, dict(model_type="bailing_moe_linear", hidden_size=WIDTH, intermediate_size=FFN, moe_intermediate_size=FFN, num_hidden_layers=5, num_attention_heads=2, num_key_value_heads=1, head_dim=8, layer_group_size=2, group_norm_size=2, num_experts=4, num_shared_experts=1,
                           num_experts_per_tok=2, n_group=1, topk_group=1, first_k_dense_replace=1, routed_scaling_factor=1.5, norm_topk_prob=True, use_qk_norm=True, use_qkv_bias=False, partial_rotary_factor=0.5, rope_theta=10000, rms_norm_eps=EPS, vocab_size=VOCAB, max_position_embeddings=128)),
}


def save(out, config, f):
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    ids = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(LENGTH)]
    W = Weights(1)
    logits = f(W, torch.tensor(ids))
    save_file({k: v.contiguous() for k, v in W.stored.items()}, os.path.join(out, "model.safetensors"), {"format": "pt"})
    for name, value in (("config.json", config), ("expected.json", {"ids": ids, "attention": "float64", "logits": [[round(float(x), 6) for x in row] for row in logits[-2:]]})):
        with open(os.path.join(out, name), "w") as file:
            json.dump(value, file, **({"indent": 1, "sort_keys": True} if name == "config.json" else {}))
            file.write("\n")
    print(os.path.basename(out), "%.2f" % float(logits[-2:].abs().max()))


def main():
    for name, layers in COMBINATIONS.items():
        save(os.path.join(HERE, name), {**LLAMA, "num_hidden_layers": len(layers)}, lambda W, ids: llama_like(W, ids, layers))
    for name, (f, config) in FAMILIES.items():
        save(os.path.join(HERE, "../families", name), config, f)


if __name__ == "__main__":
    main()
