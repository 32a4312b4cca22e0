#!/usr/bin/env python3
"""Trains an autoregressive draft head (Hydra) on the hidden states that collect.py kept: one head, evaluated once per drafted token.

From a state z and the embedding e of the token chosen behind it, it makes the state behind that token:

    x = In·[z, e] + b;  x = x + SiLU(W·x + b) in each residual block;  z' = Out·x

The first z is the model's own final state, and the model's frozen head turns z' into a guess of the token that follows e.
The loss is the sum over --steps such steps of the cross-entropy against what the model itself says of that place (its
head on its own later state) at temperature --soften, each step counting DECAY times the one before it.

Writes OUT/medusa_lm_head.safetensors: 0.in.weight [H, 2H], 0.in.bias, 0.{layer}.linear.weight and .bias, 0.{L}.weight
[H, H], and with --vocab N head.weight [N, H], the rows of the model's head of the tokens that it may propose, which are
the commonest of the texts and named by medusa_tokens of OUT/config.json.
"""

import json
import math
import pathlib
import time

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file

import arguments
import train


class Chain(torch.nn.Module):
    def __init__(self, width: int, layers: int):
        super().__init__()
        self.enter = torch.nn.Linear(2 * width, width)
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))
        self.out = torch.nn.Linear(width, width, bias=False)
        for block in self.blocks:
            torch.nn.init.normal_(block.weight, std=0.3 / math.sqrt(width))
            torch.nn.init.zeros_(block.bias)
        torch.nn.init.eye_(self.out.weight)

    def forward(self, z: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
        x = self.enter(torch.cat([z, e], -1))
        for block in self.blocks:
            x = x + F.silu(block(x))
        return self.out(x)

    @torch.no_grad()
    def start(self, texts: train.Texts, embedding: torch.Tensor, most: int = 40000) -> None:
        """In begins as the linear map that fits the next state best (ridge regression)."""
        rows = texts.rows[torch.randperm(len(texts.rows))[:most]]
        x = torch.cat([texts.hidden[rows].float(), embedding[texts.ids[rows + 1]].float(), torch.ones(len(rows), 1)], -1)
        y = texts.hidden[rows + 1].float()
        a = x.T @ x
        a += torch.eye(len(a)) * (1e-3 * a.diagonal().mean())
        w = torch.linalg.solve(a, x.T @ y)
        self.enter.weight.copy_(w[:-1].T)
        self.enter.bias.copy_(w[-1])

    def tensors(self, scale: float) -> dict:
        """Under the keys of the checkpoint; scale is what embeddings were multiplied by."""
        width = self.out.weight.shape[0]
        enter = self.enter.weight.detach().clone()
        enter[:, width:] *= scale
        out = {"0.in.weight": enter, "0.in.bias": self.enter.bias.detach()}
        for j, block in enumerate(self.blocks):
            out[f"0.{j}.linear.weight"], out[f"0.{j}.linear.bias"] = block.weight.detach(), block.bias.detach()
        out[f"0.{len(self.blocks)}.weight"] = self.out.weight.detach()
        return {k: v.half().contiguous() for k, v in out.items()}

    def load(self, file: pathlib.Path, scale: float) -> None:
        with safe_open(file, "pt") as f:
            width = self.out.weight.shape[0]
            enter = f.get_tensor("0.in.weight").float()
            enter[:, width:] /= scale
            self.enter.weight.data.copy_(enter)
            self.enter.bias.data.copy_(f.get_tensor("0.in.bias").float())
            for j, block in enumerate(self.blocks):
                block.weight.data.copy_(f.get_tensor(f"0.{j}.linear.weight").float())
                block.bias.data.copy_(f.get_tensor(f"0.{j}.linear.bias").float())
            self.out.weight.data.copy_(f.get_tensor(f"0.{len(self.blocks)}.weight").float())


@torch.no_grad()
def measure(chain: Chain, texts: train.Texts, embedding, matrix, full, args):
    """Of each step, given that those before it were right: how often the guess of rank 0 … 4 is what the model says
    (its argmax); and the tokens per step that drafts of so many tokens yield."""
    hits, seen, length = torch.zeros(args.steps, 5), torch.zeros(args.steps), 0.0
    for rows in texts.rows.split(args.batch):
        z, right = texts.hidden[rows].float(), torch.ones(len(rows), dtype=torch.bool)
        for k in range(args.steps):
            z = chain(z, embedding[texts.ids[rows + 1 + k]])
            said = full[(texts.hidden[rows + 1 + k].to(matrix.dtype) @ matrix.T).argmax(-1)] if args.fast else (texts.hidden[rows + 1 + k].to(args.whole.dtype) @ args.whole.T).argmax(-1)
            top = full[(z.to(matrix.dtype) @ matrix.T).topk(5, dim=-1).indices]
            hit = top.eq(said.unsqueeze(-1))
            hits[k] += hit[right].sum(0)
            seen[k] += right.sum()
            # only where the text goes on as the model says do the later steps mean anything
            right &= hit[:, 0] & texts.ids[rows + 2 + k].eq(said)
            length += right.sum().item() / len(texts.rows)
    return hits / seen.clamp(min=1).unsqueeze(-1), 1 + length


def loss_of(chain: Chain, texts: train.Texts, rows, embedding, matrix, sample, args):
    need = torch.unique(torch.cat([rows + 1 + k for k in range(args.steps)]))
    columns = sample() if sample else slice(None)
    m = matrix[columns]
    with torch.no_grad():
        said = F.softmax((texts.hidden[need].to(m.dtype) @ m.T).float() / args.soften, dim=-1)
    z, total = texts.hidden[rows].float(), 0.0
    for k in range(args.steps):
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            z = chain(z, embedding[texts.ids[rows + 1 + k]])
        target = said[torch.searchsorted(need, rows + 1 + k)]
        logits = (z.to(m.dtype) @ m.T).float() / args.soften
        total = total + args.decay**k * F.cross_entropy(logits, target)
        if args.regress:
            total = total + args.regress * args.decay**k * F.smooth_l1_loss(z.float(), texts.hidden[rows + 1 + k].float())
    return total


def run(args) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    files = sorted(args.data.glob("[0-9]*[0-9].npz"))
    held = files[:: args.hold]
    texts, test = train.Texts([f for f in files if f not in held], args.steps), train.Texts(held, args.steps)
    whole = train.head_matrix(args.model)
    scale = 1 / whole.std().item()
    embedding = (whole * scale).to(torch.bfloat16 if args.bf16 else torch.float32)
    args.whole = whole.to(torch.bfloat16 if args.bf16 else torch.float32)
    counts = torch.bincount(texts.ids, minlength=len(whole))
    full = counts.argsort(descending=True, stable=True)[: args.vocab or len(whole)]
    matrix = args.whole[full]
    print(f"{len(files)} texts, {len(texts.rows)} rows to train on, {len(test.rows)} held out; the {len(full)} tokens are {counts[full].sum() / counts.sum():.4f} of the texts, "
          f"{torch.isin(test.ids, full).float().mean():.4f} of those held out", flush=True)
    chain = Chain(whole.shape[1], args.layers)
    if args.init:
        chain.load(args.init, scale)
    else:
        chain.start(texts, embedding)
    sample = None
    if 0 < args.common < len(full):
        rest = len(full) - args.common
        sample = lambda: torch.cat([torch.arange(args.common), args.common + torch.randperm(rest)[: args.drawn]])
    optimizer = torch.optim.AdamW(chain.parameters(), lr=args.lr, weight_decay=args.weight_decay, betas=(0.9, 0.98))
    began, step, total, shown = time.time(), 0, 0.0, time.time()
    most = args.epochs * len(texts.rows) / args.batch
    while step < most and time.time() - began < args.seconds:
        parts = texts.rows.split(32)
        order = torch.randperm(len(parts)).tolist()
        for at in range(0, len(order), args.batch // 32):
            rows = torch.cat([parts[k] for k in order[at:at + args.batch // 32]])
            done = max(step / most, (time.time() - began) / args.seconds)
            for group in optimizer.param_groups:
                group["lr"] = args.lr * min(1.0, (step + 1) / 50) * max(0.02, 0.5 * (1 + math.cos(math.pi * min(1.0, done))))
            loss = loss_of(chain, texts, rows, embedding, matrix, sample, args)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(chain.parameters(), 1.0)
            optimizer.step()
            total, step = total * 0.98 + loss.item(), step + 1
            if time.time() - shown > args.show or done >= 1:
                hits, length = measure(chain, test, embedding, matrix, full, args)
                print(f"step {step} ({step / most * args.epochs:.2f} epochs), {time.time() - began:.0f} s: loss {total * 0.02 / (1 - 0.98**step):.3f}, {length:.3f} tokens per step; right: "
                      + "  ".join(f"{r[0]:.3f} (top-3 {r[:3].sum():.3f})" for r in hits.tolist() for r in [torch.tensor(r)]), flush=True)
                save(chain, scale, full, matrix, hits, args)
                shown = time.time()
            if done >= 1:
                break


def save(chain: Chain, scale: float, full, matrix, hits, args) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    tensors = chain.tensors(scale)
    config = dict(medusa_num_heads=1, medusa_num_layers=args.layers, base_model_name_or_path=args.base or args.model.stem,
                  medusa_accuracy=[[round(v, 4) for v in row] for row in hits.tolist()])
    if args.vocab:
        tensors["head.weight"] = matrix.half().contiguous()
        config["medusa_tokens"] = full.tolist()
    save_file(tensors, args.out / "medusa_lm_head.safetensors")
    (args.out / "config.json").write_text(json.dumps(config) + "\n")


def main() -> None:
    p = arguments.parser(__doc__, "the model's folder, or its .gguf file: where its head and its embedding are, which must be one")
    p.add_argument("--base", default="", help="the model's name in config.json")
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--layers", type=int, default=1)
    p.add_argument("--vocab", type=int, default=0, help="propose only so many tokens, the commonest, a multiple of 16; 0: all")
    p.add_argument("--soften", type=float, default=0.7, help="temperature of the model's own guesses that are learned")
    p.add_argument("--regress", type=float, default=0.0, help="weight of the distance of z' to the model's own state")
    p.add_argument("--show", type=float, default=60, help="seconds between two looks at the held-out texts")
    p.add_argument("--fast", action="store_true", help="when measuring, look for the model's greedy token among the proposed ones only")
    run(p.parse_args())


if __name__ == "__main__":
    main()
