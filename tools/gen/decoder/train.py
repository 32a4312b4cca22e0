#!/usr/bin/env python3
"""Trains a decoder whose weights were never quantized: the model of docs/benchmarks/quantization.md that types are compared on.

    python tools/gen/decoder/train.py OUT [--text FOLDER] [--steps 900]

The model is a Llama of 27 million weights: 6 layers, hidden size 512, gated SiLU FFN of 1,536, 8 heads over 4 key/value heads of 64
channels, rope, RMSNorm, tied embeddings, byte-level BPE with 16,384 tokens. All sizes are multiples of 256, the block of llama.cpp's k-quants.

The text is every .py file below FOLDER, by default the standard library of the Python that runs the script. The hash of its name puts a file
into one of three parts:

    OUT/model             the model, a Hugging Face folder with float16 weights, trained on 90 % of the files
    OUT/held-out.txt      files to score
    OUT/calibrate.txt     files to calibrate on

OUT/state.pt keeps the state every 100 steps. A run that finds it continues there.
"""

import argparse
import hashlib
import math
import pathlib
import random
import sysconfig
import time

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCAB, LENGTH, BATCH, END = 16384, 512, 8, "<|endoftext|>"
LEARNING_RATE, WARMUP = 1.5e-3, 100
# The pre-tokenizer of GPT-2 behind one that cuts off each digit, as SmolLM has it.
WORD = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def read(folder: pathlib.Path) -> dict[str, list[str]]:
    """The files of each part, in the order of their names' hashes."""
    parts = {"train": [], "held-out": [], "calibrate": []}
    files = {}
    for file in folder.rglob("*.py"):
        name = file.relative_to(folder).as_posix()
        if "site-packages/" not in name:
            files[hashlib.sha256(name.encode()).hexdigest()] = file
    for key in sorted(files):
        part = {0: "held-out", 1: "calibrate"}.get(int(key[:8], 16) % 20, "train")
        text = files[key].read_bytes().decode(errors="ignore").strip()
        if text:
            parts[part].append(text + "\n")
    return parts


def make_tokenizer(texts: list[str]) -> Tokenizer:
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Split(Regex(WORD), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return t


def rate(step: int, steps: int) -> float:
    """The share of the learning rate: linear warmup, then a cosine down to 5 %."""
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / max(1, steps - WARMUP)))


def optimizer_of(model: torch.nn.Module) -> torch.optim.Optimizer:
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                             lr=LEARNING_RATE, betas=(0.9, 0.95))


def train(model: LlamaForCausalLM, ids: torch.Tensor, steps: int, state: pathlib.Path) -> None:
    optimizer, first = optimizer_of(model), 0
    if state.exists():
        kept = torch.load(state, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["step"]
    rows = ids[: len(ids) // LENGTH * LENGTH].view(-1, LENGTH)
    start, mean = time.monotonic(), 0.0
    for step in range(first, steps):
        # The rows of a step depend only on its number: each pass over the text has its own order.
        at = [(step * BATCH + i) % len(rows) for i in range(BATCH)]
        order = list(range(len(rows)))
        random.Random(step * BATCH // len(rows)).shuffle(order)
        batch = rows[[order[i] for i in at]]
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate(step, steps)
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean += loss.item()
        if (step + 1) % 20 == 0:
            print(f"step {step + 1} of {steps}: loss {mean / 20:.3f}, {(time.monotonic() - start) / (step + 1 - first):.2f} s/step", flush=True)
            mean = 0.0
        if (step + 1) % 100 == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, state.with_suffix(".new"))
            state.with_suffix(".new").replace(state)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--text", type=pathlib.Path, default=pathlib.Path(sysconfig.get_path("stdlib")), metavar="FOLDER", help="where the .py files are")
    p.add_argument("--steps", type=int, default=900, help=f"of {BATCH * LENGTH} tokens")
    p.add_argument("--threads", type=int, default=0)
    args = p.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)

    parts = read(args.text)
    for part in ("held-out", "calibrate"):
        (args.out / f"{part}.txt").write_text("\n".join(parts[part]))
    folder = args.out / "model"
    if not (folder / "tokenizer.json").exists():
        tokenizer = make_tokenizer(parts["train"])
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, bos_token=END).save_pretrained(folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    end = tokenizer.token_to_id(END)
    ids = torch.tensor([i for e in tokenizer.encode_batch(parts["train"]) for i in [*e.ids, end]])
    print(f"{len(parts['train'])} files, {len(ids)} tokens", flush=True)

    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCAB, hidden_size=512, intermediate_size=1536, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4,
        max_position_embeddings=2048, tie_word_embeddings=True, bos_token_id=end, eos_token_id=end))
    train(model, ids, args.steps, args.out / "state.pt")
    model.to(torch.float16).save_pretrained(folder)


if __name__ == "__main__":
    main()
