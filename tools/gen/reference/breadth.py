"""Makes small random-weight model folders of many decoder-only and encoder-only families and variants, with what transformers computes
from them in float32, in the layout of record.py.

    python breadth.py OUT [NAME…] [--seed 1] [--list] [--format safetensors|sharded|pickle] [--dtype f32|f16|bf16]

A NAME is a variant or, ending in a colon, a family (`llama:`). The folders have no tokenizer: what counts is the ids.
`go run ./tools/check/breadth OUT` compares iflowc with them.
"""

import argparse
import copy
import json
import math
import pathlib
import re
import shutil
import sys
import zlib

import encoder_variants
import remote_encoders
import ties
import torch
import transformers as tf
from breadth_variants import VARIANTS
from record import Record, greedy

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
VOCAB, PROMPT, STEPS, LAST, MARGIN, TRIES = 96, 40, 24, 3, 1e-3, 6
SMALL_SHARD = "60KB"


def noise(name: str, shape, seed: int) -> torch.Tensor:
    return torch.randn(tuple(shape), generator=torch.Generator().manual_seed(zlib.crc32(f"{seed}:{name}".encode())))


@torch.no_grad()
def randomize(model, seed: int) -> None:
    """Activations near one, norms near one, biases and other vectors far enough from zero to be missed; where the head
    is the embedding, the last norm has both signs, or the model would repeat its input."""
    embed, head = model.get_input_embeddings(), model.get_output_embeddings()
    tied = head is not None and head.weight is embed.weight
    owners = dict(model.named_modules())
    norms = [n for n, m in owners.items() if "norm" in type(m).__name__.lower() and not any(c.isdigit() for c in n.split(".")[1:])]
    last = next((n for n in ("model.norm", "model.language_model.norm") if n in norms), norms[-1] if norms else "")
    for name, p in model.named_parameters():
        x, owner = noise(name, p.shape, seed), owners[name.rpartition(".")[0]]
        if p.is_complex() or not p.is_floating_point():
            continue
        if "norm" in type(owner).__name__.lower() and name.endswith("weight"):
            base = 0.0 if re.match("(Recurrent|Vault)?Gemma[23]?RMS", type(owner).__name__) or type(owner).__name__.endswith("1P") else 1.0
            value = base + 0.2 * x
            if tied and last and name.startswith(last + "."):
                value = (base + value) * 1.5 * noise(name + " sign", p.shape, seed).sign() - base
        elif p.ndim >= 2 and isinstance(owner, torch.nn.Embedding):
            value = x * (0.3 if tied else 0.7)
        elif p.ndim >= 2:
            inputs = p.shape[0] if type(owner).__name__ == "Conv1D" else p.shape[-2] if p.ndim == 3 else p.shape[-1]
            value = x * (2.0 if owner is head else 1.5) / math.sqrt(inputs)
        else:
            value = x * 0.3 - (1 if name.endswith("A_log") else 0)
        p.copy_(value)
    for name, b in model.named_buffers():
        if "correction_bias" in name or name.endswith("expert_bias"):
            b.copy_(0.2 * noise(name, b.shape, seed))
        elif name.endswith("layer_scalar"):
            b.copy_(1 + 0.2 * noise(name, b.shape, seed))
    model.tie_weights()


def published(name):
    """A class of transformers, or of remote_encoders; a function itself."""
    return name if callable(name) else getattr(tf, name, None) or getattr(remote_encoders, name)


def new_model(v, seed: int, attention: str | None = None):
    """The variant with random weights; attention None is transformers' choice."""
    params = {"vocab_size": VOCAB, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, **copy.deepcopy(v.params)}  # a configuration fills in its dicts
    config = published(v.config)(**params)
    config._attn_implementation = attention
    cls = published(v.model)
    try:
        model = cls(config)
    except AttributeError:  # StableLm's own init expects a bias of its q and k norms
        with tf.modeling_utils.no_init_weights():
            model = cls(config)
    randomize(model.eval(), seed)
    return model


def save(model, out: pathlib.Path, fmt: str, dtype: str) -> None:
    shutil.rmtree(out, ignore_errors=True)
    model.to(DTYPES[dtype]).save_pretrained(
        out, safe_serialization=fmt != "pickle", max_shard_size=SMALL_SHARD if fmt == "sharded" else "5GB")


def edit_config(out: pathlib.Path, change: dict) -> None:
    """Sets keys of config.json; a value of None takes the key out."""
    path = out / "config.json"
    config = {k: v for k, v in {**json.loads(path.read_text()), **change}.items() if k not in change or v is not None}
    path.write_text(json.dumps(config, indent=2) + "\n")


def load(v, out: pathlib.Path):
    model, info = published(v.model).from_pretrained(out, dtype=torch.float32, output_loading_info=True)
    wrong = {k: x for k, x in info.items() if x}
    if wrong:
        raise RuntimeError(f"{out} does not load cleanly: {wrong}")
    return model.eval() if hasattr(tf, v.model) else model.double().eval()


def prompt(v, state: torch.Generator) -> tuple[int, list[int]]:
    """The number of ids that prompts are drawn from, and the long prompt."""
    top = min(VOCAB, v.params.get("vocab_size", VOCAB))
    return top, torch.randint(3, top, (v.prompt or PROMPT,), generator=state).tolist()


@torch.no_grad()
def record(v, model, seed: int, fmt: str, dtype: str) -> tuple[Record, float]:
    rec = Record(family=v.family, variant=v.name, task="causal-lm", seed=seed, weights={"format": fmt, "dtype": dtype}, model_class=v.model)
    state = torch.Generator().manual_seed(seed)
    top, ids = prompt(v, state)
    batch = [torch.randint(3, top, (n,), generator=state).tolist() for n in (12, 19, 31)] if not v.prompt else []
    logits = model(torch.tensor([ids]), use_cache=False).logits[0]
    rec.doc["inputs"]["prompt"] = {"ids": ids, "logits_positions": list(range(len(ids) - LAST, len(ids)))}
    rec.array("prompt.logits", logits[-LAST:])
    rec.doc["ids"]["greedy"], margin = greedy(model, ids, v.steps, v.cached)
    rec.doc["inputs"]["batch"], rec.doc["ids"]["batch.greedy"] = {"ids": batch}, []
    for seq in batch:
        new, m = greedy(model, seq, 8, v.cached)
        rec.doc["ids"]["batch.greedy"].append(new)
        margin = min(margin, m)
    rec.doc["facts"] = {"min_margin": margin, "distinct": len(set(rec.doc["ids"]["greedy"])), "deviation": float(logits[-1].std())}
    return rec, margin


def make(v, out: pathlib.Path, seed: int, fmt: str, dtype: str) -> str:
    for salt in range(TRIES):  # weights without near ties, of greedy tokens or of the rows that sparse attention chooses
        model = new_model(v, seed + 1000 * salt)
        if v.before_save:
            v.before_save(model)
        save(model, out, fmt, dtype)
        if v.reference is None:
            model = load(v, out)
        else:
            model = v.reference(model, out)
        with ties.watch(model) as tied:
            rec, margin = (encoder_variants.record if v.encoder else record)(v, model, seed, fmt, dtype)
        if margin >= MARGIN and not tied:
            break
    if tied:
        raise RuntimeError(tied[0])
    edit_config(out, v.edit)
    if v.after:
        v.after(out)
    rec.write(out / "expected.json")
    return " ".join(f"{k} {x:.3g}" for k, x in rec.doc["facts"].items())


def main() -> int:
    ap = argparse.ArgumentParser()
    ap.add_argument("out", type=pathlib.Path)
    ap.add_argument("names", nargs="*")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--format", default="safetensors", choices=["safetensors", "sharded", "pickle"])
    ap.add_argument("--dtype", default="f32", choices=sorted(DTYPES))
    ap.add_argument("--list", action="store_true")
    a = ap.parse_args()
    torch.set_num_threads(1)
    tf.logging.set_verbosity_error()
    failed = 0
    for v in VARIANTS:
        if a.names and v.key not in a.names and v.family + ":" not in a.names:
            continue
        if a.list:
            print(f"{v.key:32s} {v.model:34s} {v.note}")
            continue
        try:
            print(f"{v.key:32s} {make(v, a.out / v.key, a.seed, a.format, a.dtype)}", flush=True)
        except Exception as e:  # one family must not hide the others
            failed += 1
            shutil.rmtree(a.out / v.key, ignore_errors=True)
            print(f"{v.key:32s} FAIL {type(e).__name__}: {str(e)[:300]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
