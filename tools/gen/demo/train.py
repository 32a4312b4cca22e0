#!/usr/bin/env python3
"""Trains the demo model from scratch on the corpus of corpus.py, on the CPU, and saves it for transformers."""

import argparse
import itertools
import json
import math
import os
import pathlib
import signal
import time

import numpy as np
import torch
import torch.distributed as dist
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END, START_TURN, END_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
VOCAB = 1536
CHAT_TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
                 "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
SAMPLES = ["Once upon a time", "The little fox", "What colour is the sky?", "<|im_start|>user\nTell me a story about a brave mouse.<|im_end|>\n<|im_start|>assistant\n"]


def documents(path: pathlib.Path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)["text"]


def train_tokenizer(path: pathlib.Path) -> PreTrainedTokenizerFast:
    """Byte-level BPE whose alphabet is all 256 bytes, so that any text encodes."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=[END, START_TURN, END_TURN], show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    strip = lambda t: t.replace(START_TURN, "").replace(END_TURN, "")
    tok.train_from_iterator((strip(t) for t in itertools.islice(documents(path), 12_000)), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tok, bos_token=END, eos_token=END, unk_token=END, pad_token=END,
                                   additional_special_tokens=[START_TURN, END_TURN], model_max_length=512,
                                   model_input_names=["input_ids", "attention_mask"],
                                   clean_up_tokenization_spaces=False)
    fast.chat_template = CHAT_TEMPLATE
    return fast


def encode(tok: PreTrainedTokenizerFast, path: pathlib.Path) -> torch.Tensor:
    """All documents in one row, each ended by the end-of-text token."""
    ids, end = [], tok.convert_tokens_to_ids(END)
    docs = documents(path)
    while batch := list(itertools.islice(docs, 4096)):
        for enc in tok.backend_tokenizer.encode_batch_fast(batch, add_special_tokens=False):
            ids.append(np.array(enc.ids + [end], dtype=np.int16))
    return torch.from_numpy(np.concatenate(ids))


def copy_weights(data: torch.Tensor, end: int, weight: float) -> torch.Tensor:
    """Loss weights: `weight` for uncommon tokens that their document has used before, one for the rest.

    Those are names, animals and things that a story mentions again; few of all tokens, they decide whether it hangs
    together, and a short training learns to copy them much sooner when they count more.
    """
    ids = data.numpy()
    common = np.bincount(ids, minlength=VOCAB) > len(ids) * 0.003
    bounds = np.flatnonzero(ids == end) + 1
    out = np.ones(len(ids), dtype=np.float16)
    for part in np.split(np.arange(len(ids)), bounds):
        _, first = np.unique(ids[part], return_index=True)
        again = np.ones(len(part), dtype=bool)
        again[first] = False
        out[part[again & ~common[ids[part]]]] = weight
    return torch.from_numpy(out)


def new_model(tok: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """GQA (4 heads over 2 key/value heads), gated SiLU FFN, rope, tied embeddings; sizes in whole blocks of 64 weights."""
    end = tok.convert_tokens_to_ids(END)
    config = LlamaConfig(vocab_size=VOCAB, hidden_size=128, intermediate_size=384, num_hidden_layers=7, num_attention_heads=4,
                         num_key_value_heads=2, head_dim=32, max_position_embeddings=512, rms_norm_eps=1e-5, rope_theta=10000.0,
                         tie_word_embeddings=True, bos_token_id=end, eos_token_id=end, pad_token_id=None)
    model = LlamaForCausalLM(config)
    for name, p in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            p.data /= math.sqrt(2 * config.num_hidden_layers)
    model.generation_config.eos_token_id = [end, tok.convert_tokens_to_ids(END_TURN)]
    return model


def save(model: LlamaForCausalLM, tok: PreTrainedTokenizerFast, out: pathlib.Path) -> None:
    """Half-precision copy of the model and the tokenizer, as transformers loads them."""
    out.mkdir(parents=True, exist_ok=True)
    half = LlamaForCausalLM(model.config)
    half.load_state_dict(model.state_dict())
    half.generation_config = model.generation_config
    half.half().save_pretrained(out, safe_serialization=True)
    tok.save_pretrained(out)
    chat = out / "chat_template.jinja"
    chat.unlink(missing_ok=True)
    config = json.loads((out / "tokenizer_config.json").read_text())
    config["chat_template"] = CHAT_TEMPLATE
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


@torch.no_grad()
def show(model, tok) -> None:
    """Prints continuations of a few prompts."""
    model.eval()
    for prompt, temp in itertools.product(SAMPLES, (0.0, 0.8)):
        x = tok(prompt, return_tensors="pt", add_special_tokens=False).input_ids
        kind = dict(do_sample=False) if temp == 0 else dict(do_sample=True, temperature=temp, top_k=0)
        y = model.generate(x, attention_mask=torch.ones_like(x), max_new_tokens=160, pad_token_id=0, **kind)
        print(f"[{temp}] {tok.decode(y[0])}\n", flush=True)
    model.train()


@torch.no_grad()
def loss_on(model, data: torch.Tensor, length: int = 256, rows: int = 128) -> float:
    model.eval()
    x = data[: rows * length].long().view(rows, length)
    losses = [model(input_ids=r, labels=r, use_cache=False).loss.item() for r in x.split(16)]
    model.train()
    return sum(losses) / len(losses)


def learning_rate(step: int, args) -> float:
    """Warm-up, constant, then a cosine to a fiftieth over the last `decay` steps."""
    t = max(0, step - (args.steps - args.decay)) / args.decay
    return args.lr * min(1.0, (step + 1) / args.warmup) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * t)))


def batch(data: torch.Tensor, starts: np.ndarray, step: int, args) -> torch.Tensor:
    """Positions [rows, length] that depend on seed, step and rank only, so that a resumed run draws the same.

    At first rows are half a context long and cut anywhere (attention is a third of the cost); from step `align`
    on they are full and begin with a document: names and things can then be found in the row itself, and the
    model learns to copy instead of guessing them.
    """
    length = 256 if step < args.align else 512
    rank = dist.get_rank() if dist.is_initialized() else 0
    rng, rows = np.random.default_rng((args.seed, step, rank)), args.batch_tokens // length
    if step < args.align:
        at = rng.integers(0, len(data) - length - 1, rows)
    else:
        at = starts[rng.integers(0, np.searchsorted(starts, len(data) - length), rows)]
    return torch.from_numpy(at)[:, None] + torch.arange(length)


def share_gradients(model, flag: bool) -> bool:
    """Puts the mean over all processes in place of the gradients; true when any process has raised its flag."""
    if not dist.is_initialized():
        return flag
    params = list(model.parameters())
    flat = torch.cat([p.grad.reshape(-1) for p in params] + [torch.tensor([float(flag)])])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for p, g in zip(params, flat[:-1].split([p.numel() for p in params])):
        p.grad.copy_(g.view_as(p))
    return bool(flat[-1] > 0)


def optimizer(model, args) -> torch.optim.AdamW:
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.98), fused=True)


def train(args) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
    lead = not dist.is_initialized() or dist.get_rank() == 0
    tok = train_tokenizer(args.corpus)
    data = encode(tok, args.corpus)
    held, data = data[:65536], data[65536:]
    starts = np.flatnonzero(data.numpy() == tok.convert_tokens_to_ids(END)) + 1
    weights = copy_weights(data, tok.convert_tokens_to_ids(END), args.copy_weight)
    model = new_model(tok)
    opt, first = optimizer(model, args), 0
    if args.state and args.state.exists():
        kept = torch.load(args.state)
        model.load_state_dict(kept["model"])
        opt.load_state_dict(kept["opt"])
        first = kept["step"]
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(data)} tokens, vocabulary {len(tok)}", flush=True)
    fast = torch.compile(model, dynamic=False) if args.compile else model
    began = time.time()
    wanted = []  # SIGUSR1 asks for the decay to begin now
    signal.signal(signal.SIGUSR1, lambda *_: wanted.append(True))
    for step in itertools.count(first):
        for group in opt.param_groups:
            group["lr"] = learning_rate(step, args)
        at = batch(data, starts, step, args)
        x = data[at].long()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            logits = fast(input_ids=x, use_cache=False).logits
        each = torch.nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1), x[:, 1:].flatten(), reduction="none")
        w = weights[at[:, 1:]].float().flatten()
        loss = (each * w).sum() / w.sum()
        loss.backward()
        if share_gradients(model, wanted.pop() if wanted else False) and args.steps > step + args.decay:
            args.steps = step + 1 + args.decay
            print(f"the decay begins; repeat with --steps {args.steps}", flush=True)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        if lead and (step % 50 == 0 or step == first):
            print(f"step {step} loss {each.mean().item():.3f} weighted {loss.item():.3f} lr {group['lr']:.5f} {time.time() - began:.0f}s", flush=True)
        last = step + 1 in (args.steps, args.until)
        if lead and ((step + 1) % args.save_every == 0 or last):
            save(model, tok, args.out)
            if args.state:
                torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step + 1}, args.state)
            print(f"step {step + 1} held-out loss {loss_on(model, held):.4f} after {time.time() - began:.0f}s", flush=True)
            show(model, tok)
        if last:
            return


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--corpus", type=pathlib.Path, required=True)
    ap.add_argument("--out", type=pathlib.Path, required=True)
    ap.add_argument("--steps", type=int, default=3600)
    ap.add_argument("--batch-tokens", type=int, default=4096)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--decay", type=int, default=1000, help="steps at the end over which the rate falls")
    ap.add_argument("--align", type=int, default=800, help="step from which rows begin with a document")
    ap.add_argument("--copy-weight", type=float, default=1.0, help="loss weight of uncommon tokens that their document repeats")
    ap.add_argument("--warmup", type=int, default=100)
    ap.add_argument("--until", type=int, help="stop after this step, to go on later with --state")
    ap.add_argument("--save-every", type=int, default=500)
    ap.add_argument("--state", type=pathlib.Path, help="file to keep the optimizer in, and to go on from")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--threads", type=int, default=1, help="one is the most efficient at this size")
    ap.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    ap.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    train(ap.parse_args())


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main()
