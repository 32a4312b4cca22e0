#!/usr/bin/env python3
"""Trains an EAGLE-3 head (Li et al. 2025, arXiv:2503.01840) on the texts that collect.py kept.

Row t reads the inputs of three of the model's layers at token t and the embedding e of token t + 1:

    h = fc·[low, middle, high];  z = layer(norm(e), h);  logits = head·norm(z)

The layer is a Llama layer whose queries, keys and values read [norm(e), norm(h)]; z takes the place of h when the head is
applied to its own output. Training does the same (training-time test, §3.2): --steps applications, each on the states of
the one before it. The loss is the cross-entropy against what the model itself says of the place, each step counting DECAY
times the one before it. The output matrix is the model's, of the tokens that may be proposed, and stays as it is.

Writes OUT/model.safetensors and OUT/config.json in the form of SafeAILab's code.
"""

import json
import math
import pathlib
import time

import arguments
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def llama_of_gguf(file: pathlib.Path):
    """A Llama of a GGUF file, which stores the rows of queries and keys in another order."""
    from gguf import GGUFReader, dequantize
    reader = GGUFReader(file)
    meta = lambda k: reader.fields["llama." + k].contents()
    heads, kv = meta("attention.head_count"), meta("attention.head_count_kv")
    weights = {}
    for t in reader.tensors:
        x = torch.tensor(dequantize(t.data, t.tensor_type)).float()
        part = t.name.split(".")
        if part[0] == "blk":
            if part[2] in ("attn_q", "attn_k"):
                n = heads if part[2] == "attn_q" else kv
                x = x.reshape(n, x.shape[0] // n // 2, 2, -1).transpose(1, 2).reshape(x.shape)
            weights[f"model.layers.{part[1]}.{NAMES[part[2]]}.weight"] = x
        elif t.name in ("token_embd.weight", "output.weight", "output_norm.weight"):
            weights[{"token_embd.weight": "model.embed_tokens.weight", "output.weight": "lm_head.weight", "output_norm.weight": "model.norm.weight"}[t.name]] = x
    tied = "lm_head.weight" not in weights
    config = LlamaConfig(vocab_size=len(weights["model.embed_tokens.weight"]), hidden_size=meta("embedding_length"), intermediate_size=meta("feed_forward_length"), num_hidden_layers=meta("block_count"),
                         num_attention_heads=heads, num_key_value_heads=kv, rms_norm_eps=meta("attention.layer_norm_rms_epsilon"), max_position_embeddings=meta("context_length"),
                         rope_parameters=dict(rope_type="default", rope_theta=meta("rope.freq_base")), tie_word_embeddings=tied)
    model = LlamaForCausalLM._from_config(config)
    missing, unknown = model.load_state_dict(weights, strict=False)
    if unknown or [k for k in missing if not (tied and k == "lm_head.weight")]:
        raise SystemExit(f"{file}: missing {missing}, unknown {unknown}")
    model.tie_weights()
    return model


def norm(x, weight, eps):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Head(torch.nn.Module):
    def __init__(self, model, taps):
        super().__init__()
        c = self.config = model.config
        self.theta = c.rope_parameters["rope_theta"]
        h, self.taps = c.hidden_size, taps
        self.d = getattr(c, "head_dim", None) or h // c.num_attention_heads
        last = model.model.layers[-1]
        linear = lambda rows, cols: torch.nn.Linear(cols, rows, bias=False)
        self.fc = linear(h, len(taps) * h)
        self.scale = torch.ones(len(taps) * h)  # of the taps, some of which are far larger than others; fc is trained on x / scale
        self.q, self.k, self.v = (linear(len(p.weight), 2 * h) for p in (last.self_attn.q_proj, last.self_attn.k_proj, last.self_attn.v_proj))
        self.o, self.gate, self.up, self.down = linear(h, len(last.self_attn.q_proj.weight)), linear(c.intermediate_size, h), linear(c.intermediate_size, h), linear(h, c.intermediate_size)
        self.norms = torch.nn.ParameterDict({n: torch.nn.Parameter(torch.ones(h)) for n in ("embed", "hidden", "ffn", "out")})
        with torch.no_grad():
            self.norms["ffn"].copy_(last.post_attention_layernorm.weight)
            self.norms["out"].copy_(model.model.norm.weight)

    def balance(self, texts):
        """Sets the scale of the taps."""
        self.scale = torch.stack([t[1].float().pow(2).mean(0) for t in texts]).mean(0).sqrt().clamp(min=1e-3)

    @torch.no_grad()
    def start(self, texts, embedding, most=40000):
        """Begins as the linear map of taps and embedding that fits the model's next state best (ridge regression). Attention
        passes the embedding: queries and keys are alike for one token, so that each row attends to itself."""
        c, h = self.config, self.fc.weight.shape[0]
        x, y, rows = [], [], 0
        for ids, taps, final, prompt in texts:
            at = torch.arange(max(0, prompt - 2), len(ids) - 1)
            x.append(torch.cat([taps[at].float(), norm(embedding[ids[at + 1]], self.norms["embed"], c.rms_norm_eps)], -1))
            y.append(final[at + 1].float() / self.norms["out"])
            if (rows := rows + len(at)) > most:
                break
        x, y = torch.cat(x), torch.cat(y)
        x[:, : -h] /= self.scale
        a = x.T @ x
        w = torch.linalg.solve(a + 1e-3 * torch.diag(a.diagonal()) + 1e-6 * torch.eye(len(a)), x.T @ y).T
        self.fc.weight.copy_(w[:, :-h])
        u, s, v = torch.linalg.svd(w[:, -h:])
        groups = len(self.v.weight) // self.d
        part = u * s.sqrt()
        for p in (self.q, self.k, self.v, self.o, self.down):
            p.weight.zero_()
        for p in (self.gate, self.up):
            p.weight.normal_(std=1 / math.sqrt(h))
        each = len(self.q.weight) // len(self.k.weight)
        for g in range(groups):
            some = slice(g * self.d, (g + 1) * self.d)
            same = torch.randn(self.d, h) * (1.2 / math.sqrt(h))
            self.k.weight[some, :h] = same
            self.v.weight[some, :h] = s.sqrt()[some, None] * v[some]
            for j in range(each):
                head = slice((g * each + j) * self.d, (g * each + j + 1) * self.d)
                self.q.weight[head, :h] = same * 3
                self.o.weight[:, head] = part[:, some] / each

    def turned(self, x, first):
        """Heads of x, turned by positions first, first + 1, …"""
        b, t, _ = x.shape
        x = x.view(b, t, -1, self.d).transpose(1, 2)
        angle = torch.arange(first, first + t)[:, None] * self.theta ** (-torch.arange(0, self.d, 2) / self.d)
        cos, sin = torch.cat([angle.cos()] * 2, -1).to(x.dtype), torch.cat([angle.sin()] * 2, -1).to(x.dtype)
        return x * cos + torch.cat([-x[..., self.d // 2:], x[..., :self.d // 2]], -1) * sin

    def step(self, k, h, e, past):
        """Application k on states h [B, T, H] and embeddings e; past holds the keys and values of the earlier ones."""
        eps, group = self.config.rms_norm_eps, self.config.num_attention_heads // self.config.num_key_value_heads
        x = torch.cat([norm(e, self.norms["embed"], eps), norm(h, self.norms["hidden"], eps)], -1)
        q, key, value = self.turned(self.q(x), k), self.turned(self.k(x), k), self.v(x).view(*x.shape[:2], -1, self.d).transpose(1, 2)
        past.append((key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)))
        t = x.shape[1]
        scores = q @ past[0][0].transpose(2, 3) + torch.full((t, t), float("-inf")).triu(1)
        own = [(q * a).sum(-1, keepdim=True) for a, _ in past[1:]]  # rows of the same draft
        p = (torch.cat([scores, *own], -1).float() / math.sqrt(self.d)).softmax(-1)
        a = p[..., :t].to(x.dtype) @ past[0][1].to(x.dtype)
        for i, (_, v) in enumerate(past[1:]):
            a = a + p[..., t + i, None].to(x.dtype) * v
        x = h + self.o(a.transpose(1, 2).reshape(*h.shape[:2], -1))
        m = norm(x, self.norms["ffn"], eps)
        return x + self.down(F.silu(self.gate(m)) * self.up(m))

    def tensors(self):
        names = {"fc": self.fc, "midlayer.self_attn.q_proj": self.q, "midlayer.self_attn.k_proj": self.k, "midlayer.self_attn.v_proj": self.v, "midlayer.self_attn.o_proj": self.o,
                 "midlayer.mlp.gate_proj": self.gate, "midlayer.mlp.up_proj": self.up, "midlayer.mlp.down_proj": self.down}
        out = {f"{k}.weight": v.weight for k, v in names.items()} | {"fc.weight": self.fc.weight / self.scale}
        for k, v in (("midlayer.input_layernorm", "embed"), ("midlayer.hidden_norm", "hidden"), ("midlayer.post_attention_layernorm", "ffn"), ("norm", "out")):
            out[f"{k}.weight"] = self.norms[v]
        return {k: v.detach().half().contiguous() for k, v in out.items()}

    def load(self, tensors):
        with torch.no_grad():
            for part, p in (("fc", self.fc), *((f"midlayer.self_attn.{n}_proj", getattr(self, n)) for n in "qkvo"), *((f"midlayer.mlp.{n}_proj", getattr(self, n)) for n in ("gate", "up", "down"))):
                p.weight.copy_(tensors[part + ".weight"])
            self.fc.weight.mul_(self.scale)
            for k, v in (("midlayer.input_layernorm", "embed"), ("midlayer.hidden_norm", "hidden"), ("midlayer.post_attention_layernorm", "ffn"), ("norm", "out")):
                self.norms[v].copy_(tensors[k + ".weight"])


@torch.no_grad()
def record(model, files, taps, bf16, progress):
    """Of each text: ids, the tapped states, the final states, and from which token on it counts."""
    out, began = [], time.time()
    for i, file in enumerate(files):
        d = np.load(file)
        ids = torch.from_numpy(d["ids"]).long()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            states = model.model(ids[None], output_hidden_states=True, use_cache=False)
        h = torch.cat([states.hidden_states[k][0] for k in taps], -1)
        out.append((ids, h.half(), states.last_hidden_state[0].half(), int(d["prompt"])))
        if progress and i % 50 == 49:
            print(f"{i + 1} of {len(files)} texts read, {time.time() - began:.0f} s", flush=True)
    return out


def batches(texts, size):
    """Batches of texts of similar length, padded."""
    order = sorted(range(len(texts)), key=lambda i: (len(texts[i][0]), i))
    for at in torch.randperm((len(order) + size - 1) // size).tolist():
        some = [texts[i] for i in order[at * size:(at + 1) * size]]
        pad = lambda k: torch.nn.utils.rnn.pad_sequence([t[k] for t in some], batch_first=True)
        ids, taps, final = pad(0), pad(1).float(), pad(2).float()
        at = torch.arange(ids.shape[1])[None]
        counts = (at >= torch.tensor([max(0, t[3] - 2) for t in some])[:, None]) & (at < torch.tensor([len(t[0]) - 1 for t in some])[:, None])
        yield ids, taps, final, counts, pad(4) if len(some[0]) > 4 else None


def run_steps(head, ids, taps, embedding, steps, bf16):
    """States after each application; those of application k at index t are of row t + k."""
    past, out = [], []
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        h = head.fc(taps / head.scale)
        for k in range(steps):
            e = F.pad(embedding[ids], (0, 0, 0, k + 1))[:, k + 1:]
            h = head.step(k, h.float(), e, past)
            out.append(h)
    return out


def shifted(x, by):
    return F.pad(x, (0, 0) * (x.dim() - 2) + (0, by))[:, by:]


def loss_of(head, batch, embedding, whole, columns, args):
    ids, taps, final, counts, _ = batch
    m, total = whole[columns], 0.0
    for k, z in enumerate(run_steps(head, ids, taps, embedding, args.steps, args.bf16)):
        rows = counts & shifted(counts, k + 1)
        said = (shifted(final, k + 1)[rows].to(m.dtype) @ m.T).float().div(args.soften).softmax(-1)
        logits = (norm(z[rows], head.norms["out"], head.config.rms_norm_eps).to(m.dtype) @ m.T).float() / args.soften
        total = total + args.decay**k * F.cross_entropy(logits, said)
    return total


@torch.no_grad()
def measure(head, texts, embedding, whole, full, args):
    """Of each step, given that those before it were right: how often it is what the model says; and the tokens per step of drafts of so many tokens."""
    hits, seen, tokens, places = torch.zeros(args.steps), torch.zeros(args.steps), 0.0, 0
    for ids, taps, _, counts, said in batches(texts, args.batch):
        right = counts & shifted(counts, args.steps + 1)
        places += right.sum().item()
        for k, z in enumerate(run_steps(head, ids, taps, embedding, args.steps, args.bf16)):
            guess = torch.zeros_like(ids)
            guess[right] = full[(norm(z[right], head.norms["out"], head.config.rms_norm_eps).to(whole.dtype) @ whole[full].T).argmax(-1)]
            hit = right & guess.eq(shifted(said, k + 1))
            hits[k] += hit.sum()
            seen[k] += right.sum()
            right = hit & shifted(ids, k + 2).eq(shifted(said, k + 1))  # only where the text goes on as the model says
            tokens += right.sum().item()
    return hits / seen.clamp(min=1), 1 + tokens / places


def save(head, full, whole, args):
    args.out.mkdir(parents=True, exist_ok=True)
    order = full.sort().values
    tensors = head.tensors() | {"lm_head.weight": whole[order].half().contiguous(), "d2t": order - torch.arange(len(order)), "t2d": torch.zeros(len(whole), dtype=torch.bool).index_fill(0, order, True)}
    save_file(tensors, args.out / "model.safetensors")
    c = head.config
    config = dict(architectures=["LlamaForCausalLMEagle3"], model_type="llama", hidden_size=c.hidden_size, intermediate_size=c.intermediate_size, num_hidden_layers=1, num_attention_heads=c.num_attention_heads,
                  num_key_value_heads=c.num_key_value_heads, head_dim=head.d, hidden_act="silu", rms_norm_eps=c.rms_norm_eps, rope_theta=head.theta, max_position_embeddings=c.max_position_embeddings,
                  vocab_size=len(whole), draft_vocab_size=len(order), tie_word_embeddings=False)
    (args.out / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def run(args):
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    if args.model.suffix == ".gguf":
        model = llama_of_gguf(args.model)
    else:
        model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32, config=AutoConfig.from_pretrained(args.model))
    model.eval().requires_grad_(False)
    n = model.config.num_hidden_layers
    head = Head(model, [2, n // 2, n - 3])
    files = sorted(args.data.glob("[0-9]*[0-9].npz"))
    held = files[:: args.hold]
    texts, test = record(model, [f for f in files if f not in held], head.taps, args.bf16, True), record(model, held, head.taps, args.bf16, False)
    kind = torch.bfloat16 if args.bf16 else torch.float32
    whole, embedding = model.lm_head.weight.to(kind), model.model.embed_tokens.weight
    test = [(*t, (t[2].to(kind) @ whole.T).argmax(-1)) for t in test]  # what the model says
    del model
    head.balance(texts)
    if args.init:
        head.load(load_file(args.init))
    else:
        head.start(texts, embedding)
    counts = torch.bincount(torch.cat([t[0] for t in texts]), minlength=len(whole))
    full = counts.argsort(descending=True, stable=True)[: args.vocab or len(whole)]
    print(f"{len(texts)} texts of {sum(len(t[0]) for t in texts)} tokens to train on, {len(test)} held out", flush=True)
    optimizer = torch.optim.AdamW(head.parameters(), lr=args.lr, weight_decay=args.weight_decay, betas=(0.9, 0.95))
    began, step, total, shown, done = time.time(), 0, 0.0, -math.inf, 0.0
    each = (len(texts) + args.batch - 1) // args.batch
    while done < 1:
        for batch in batches(texts, args.batch):
            done = max((step + 1) / (args.epochs * each), (time.time() - began) / args.seconds)
            for group in optimizer.param_groups:
                group["lr"] = args.lr * min(1.0, (step + 1) / 30) * max(0.03, 0.5 * (1 + math.cos(math.pi * min(1.0, done))))
            columns = full if args.common <= 0 or args.common >= len(full) else torch.cat([full[: args.common], full[args.common + torch.randperm(len(full) - args.common)[: args.drawn]]])
            loss = loss_of(head, batch, embedding, whole, columns, args)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimizer.step()
            total, step = total * 0.98 + loss.item(), step + 1
            if time.time() - shown > args.show or done >= 1:
                hits, length = measure(head, test, embedding, whole, full, args)
                print(f"step {step} (epoch {step / each:.2f}), {time.time() - began:.0f} s: loss {total * 0.02 / (1 - 0.98**step):.3f}, {length:.3f} tokens per step; right: " + " ".join(f"{x:.3f}" for x in hits.tolist()), flush=True)
                save(head, full, whole.float(), args)
                shown = time.time()
            if done >= 1:
                break


def main():
    p = arguments.parser(__doc__, "folder of a Llama, or its .gguf file", epochs=10, batch=4, lr=4e-4)
    p.add_argument("--steps", type=int, default=3, help="applications of the head in training")
    p.add_argument("--vocab", type=int, default=0, help="propose only so many tokens, the commonest, a multiple of 16; 0: all")
    p.add_argument("--soften", type=float, default=1.0, help="temperature of the model's own guesses that are learned")
    p.add_argument("--show", type=float, default=120, help="seconds between two looks at the held-out texts")
    run(p.parse_args())


if __name__ == "__main__":
    main()
