#!/usr/bin/env python3
"""Trains Medusa heads (Medusa-1: the model stays as it is) on the hidden states that collect.py kept.

A head is L residual blocks x + SiLU(W·x + b) and a matrix to the vocabulary. Head i guesses the token 2+i places behind
the one whose state it reads: the loss is the sum over the heads of the cross-entropy on labels shifted by 2+i, times
DECAY to the power of i. With --share-head a square matrix is trained instead and behind it stands the model's own head,
frozen, of which --vocab takes the first rows.

Writes OUT/medusa_lm_head.safetensors under the reference's keys, {head}.{layer}.linear.weight and .bias,
{head}.{L}.weight, and OUT/config.json with the number of heads and layers and, on held-out texts, how often the token is
a head's guess of rank 0 … 9 given that the heads before it had theirs among their best four.
"""

import json
import math
import pathlib
import time

import arguments
import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file

RANKS, BEFORE = 10, 4


def head_matrix(model: pathlib.Path) -> torch.Tensor:
    """The model's head [V, H]: its own, or the embedding where they are tied."""
    if model.suffix == ".gguf":
        from gguf import GGUFReader, dequantize
        tensors = {t.name: t for t in GGUFReader(model).tensors}
        t = tensors.get("output.weight") or tensors["token_embd.weight"]
        return torch.from_numpy(dequantize(t.data, t.tensor_type)).float()
    found = {}
    for file in sorted(model.glob("*.safetensors")):
        with safe_open(file, "pt") as f:
            for name in ("lm_head.weight", "model.embed_tokens.weight"):
                if name in f.keys():
                    found[name] = f.get_tensor(name)
    return found.get("lm_head.weight", found.get("model.embed_tokens.weight")).float()


class Texts:
    """States of all texts one behind the other, and for each the rows whose labels count, or from which a chain of so many steps may start."""

    def __init__(self, files, heads: int):
        ids, hidden, rows, at = [], [], [], 0
        for file in files:
            d = np.load(file)
            n, prompt = len(d["ids"]), int(d["prompt"])
            ids.append(d["ids"])
            hidden.append(d["hidden"])
            # a row counts when its first head's label belongs to the answer and all heads have labels
            rows.append(np.arange(max(0, prompt - 2), n - 1 - heads) + at)
            at += n
        self.ids = torch.from_numpy(np.concatenate(ids)).long()
        self.hidden = torch.from_numpy(np.concatenate(hidden))
        self.rows = torch.from_numpy(np.concatenate(rows))

    def labels(self, rows: torch.Tensor, head: int) -> torch.Tensor:
        return self.ids[rows + 2 + head]


class Head(torch.nn.Module):
    def __init__(self, width: int, layers: int, matrix: torch.Tensor, share: bool):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))
        for block in self.blocks:
            torch.nn.init.zeros_(block.weight)
            torch.nn.init.zeros_(block.bias)
        self.share = share
        if share:  # SiLU lowers nothing by more than 0.28, so that blocks alone cannot undo what the state says of the next token
            self.out = torch.nn.Parameter(torch.eye(width))
        self.matrix = matrix if share else torch.nn.Parameter(matrix.clone())

    def forward(self, x: torch.Tensor, columns=None) -> torch.Tensor:
        for block in self.blocks:
            x = x + F.silu(block(x))
        if self.share:
            x = x @ self.out.T
        matrix = self.matrix if columns is None else self.matrix[columns]
        return (x.to(matrix.dtype) @ matrix.T).float()

    def tensors(self, head: int) -> dict:
        out = {}
        for j, block in enumerate(self.blocks):
            out[f"{head}.{j}.linear.weight"] = block.weight.detach().half().contiguous()
            out[f"{head}.{j}.linear.bias"] = block.bias.detach().half().contiguous()
        last = self.out if self.share else self.matrix
        out[f"{head}.{len(self.blocks)}.weight"] = last.detach().half().contiguous()
        return out


@torch.no_grad()
def accuracy(heads, texts: Texts, batch: int):
    """How often the label is among the best 1 … 5, and the conditional shares of ranks that config.json holds."""
    top = torch.zeros(len(heads), 5)
    ranks = torch.zeros(len(heads), RANKS)
    seen = torch.zeros(len(heads))
    for rows in texts.rows.split(batch):
        x = texts.hidden[rows].float()
        before = torch.ones(len(rows), dtype=torch.bool)
        for i, head in enumerate(heads):
            guesses = head(x).topk(RANKS, dim=-1).indices
            hit = guesses.eq(texts.labels(rows, i).unsqueeze(-1))
            for k in range(5):
                top[i, k] += hit[:, : k + 1].any(-1).sum()
            ranks[i] += hit[before].sum(0)
            seen[i] += before.sum()
            before &= hit[:, :BEFORE].any(-1)
    return top / len(texts.rows), ranks / seen.clamp(min=1).unsqueeze(-1)


class Sample:
    """Some columns of a large vocabulary for the softmax of a batch: the common tokens, those of the labels, and of the
    rest a random part, whose logits are raised by -log of the share that is drawn (sampled softmax)."""

    def __init__(self, texts: Texts, vocab: int, common: int, drawn: int):
        counts = torch.bincount(texts.ids[texts.ids < vocab], minlength=vocab)
        order = counts.argsort(descending=True)
        self.common, self.rest, self.drawn = order[:common], order[common:], min(drawn, vocab - common)
        self.share = max(self.drawn, 1) / max(len(self.rest), 1)
        self.rare = torch.zeros(vocab, dtype=torch.bool)
        self.rare[self.rest] = True

    def columns(self, labels: torch.Tensor):
        drawn = self.rest[torch.randint(len(self.rest), (self.drawn,))]
        columns = torch.unique(torch.cat([self.common, drawn, labels]))
        return columns, self.rare[columns].float() * -math.log(self.share)


def soft_labels(texts: Texts, rows: torch.Tensor, matrix: torch.Tensor, args):
    """What the model itself says of each head's token, given the tokens before it: its head on later states of the text."""
    need = torch.unique(torch.cat([rows + 1 + i for i in range(args.heads)]))
    with torch.no_grad():
        said = F.softmax((texts.hidden[need].to(matrix.dtype) @ matrix.T).float() / args.soften, dim=-1)
    return lambda i: said[torch.searchsorted(need, rows + 1 + i)]


def loss_of(heads, texts: Texts, rows: torch.Tensor, sample, args) -> torch.Tensor:
    """The sum over the heads of the cross-entropy; tokens that a head cannot say do not count."""
    x, matrix = texts.hidden[rows].float(), heads[0].matrix
    labels = [texts.labels(rows, i) for i in range(len(heads))]
    known = [l < matrix.shape[0] for l in labels]
    columns, raised = None, 0.0
    if sample is not None:
        columns, raised = sample.columns(torch.cat([l[k] for l, k in zip(labels, known)]))
        labels = [torch.searchsorted(columns, l) for l in labels]
    total, soft = 0.0, None
    if args.soften:
        soft = soft_labels(texts, rows, matrix if columns is None else matrix[columns], args)
    for i, head in enumerate(heads):
        logits = head(x, columns) + raised
        target = soft(i)[known[i]] if soft else labels[i][known[i]]
        total = total + args.decay**i * F.cross_entropy(logits[known[i]], target)
    return total


def batches(rows: torch.Tensor, args):
    """Rows in random order; where the model labels them in runs, which share its work."""
    run = 32 if args.soften else 1
    parts = rows.split(run)
    order = torch.randperm(len(parts)).tolist()
    per = args.batch // run
    for at in range(0, len(order), per):
        yield torch.cat([parts[k] for k in order[at:at + per]])


def show(name: str, top: torch.Tensor) -> None:
    for i, row in enumerate(top):
        print(f"  {name} head {i}: " + "  ".join(f"top-{k + 1} {p:.3f}" for k, p in enumerate(row.tolist())), flush=True)


def train(args) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    files = sorted(args.data.glob("[0-9]*[0-9].npz"))
    held = files[:: args.hold]
    texts = Texts([f for f in files if f not in held], args.heads)
    test = Texts(held, args.heads)
    matrix = head_matrix(args.model)
    if args.share_head:
        matrix = matrix[: args.vocab or len(matrix)].to(torch.bfloat16 if args.bf16 else torch.float32)
    heads = torch.nn.ModuleList(Head(texts.hidden.shape[1], args.layers, matrix, args.share_head) for _ in range(args.heads))
    if args.init:
        load(heads, args.init)
    print(f"{len(files)} texts, {len(texts.rows)} rows to train on, {len(test.rows)} held out", flush=True)
    vocab = heads[0].matrix.shape[0]
    sample = Sample(texts, vocab, args.common, args.drawn) if 0 < args.common < vocab else None
    optimizer = torch.optim.AdamW([p for p in heads.parameters() if p.requires_grad], lr=args.lr, weight_decay=args.weight_decay, betas=(0.9, 0.98))
    steps, began = args.epochs * math.ceil(len(texts.rows) / args.batch), time.time()
    step = 0
    for epoch in range(math.ceil(args.epochs)):
        total = 0.0
        for rows in batches(texts.rows, args):
            for group in optimizer.param_groups:
                group["lr"] = args.lr * min(1.0, (step + 1) / 20) * 0.5 * (1 + math.cos(math.pi * min(1.0, max(step / steps, (time.time() - began) / args.seconds))))
            loss = loss_of(heads, texts, rows, sample, args)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            step += 1
            if time.time() - began > args.seconds:
                break
        top, ranks = accuracy(heads, test, args.batch)
        print(f"epoch {epoch}: loss {total / len(texts.rows):.3f}, {time.time() - began:.0f} s", flush=True)
        show("held out", top)
        save(heads, ranks, top, args)
        if time.time() - began > args.seconds:
            break


def load(heads, file: pathlib.Path) -> None:
    with safe_open(file, "pt") as f:
        for i, head in enumerate(heads):
            for name, p in list(head.named_parameters()):
                block = name.split(".")
                key = f"{i}.{block[1]}.linear.{block[2]}" if block[0] == "blocks" else f"{i}.{len(head.blocks)}.weight"
                p.data.copy_(f.get_tensor(key).float())


def save(heads, ranks: torch.Tensor, top: torch.Tensor, args) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for i, head in enumerate(heads):
        tensors.update(head.tensors(i))
    save_file(tensors, args.out / "medusa_lm_head.safetensors")
    rounded = lambda t: [[round(v, 4) for v in row] for row in t.tolist()]
    config = dict(medusa_num_heads=args.heads, medusa_num_layers=args.layers, base_model_name_or_path=args.base or args.model.stem,
                  medusa_accuracy=rounded(ranks), held_out_top=rounded(top))
    (args.out / "config.json").write_text(json.dumps(config) + "\n")


def main() -> None:
    p = arguments.parser(__doc__, "the model's folder, or its .gguf file: where its head is", "head", decay=1.0, hold=12)
    p.add_argument("--base", default="", help="the model's name in config.json")
    p.add_argument("--heads", type=int, default=3)
    p.add_argument("--layers", type=int, default=1)
    p.add_argument("--share-head", action="store_true", help="use the model's own head, frozen")
    p.add_argument("--vocab", type=int, default=0, help="with --share-head: only the first so many tokens")
    p.add_argument("--soften", type=float, default=0.0, help="with --share-head: learn what the model says of each place, at this temperature, in place of the one token that stands there; 0: the token")
    train(p.parse_args())


if __name__ == "__main__":
    main()
