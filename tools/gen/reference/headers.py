"""Prints the tensors that Hugging Face transformers would store for a model of a config.json: name, type and shape, one
a line, ranges of layers and experts folded. No weight is made.

    python headers.py config.json [--dtype bf16]        needs torch, transformers
"""

import argparse
import collections
import json
import re

import torch
import transformers as tf
from transformers.core_model_loading import revert_weight_conversion

DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def model(config):
    """The architecture that config.json names, without memory for its weights."""
    c = tf.AutoConfig.for_model(**config)
    with torch.device("meta"):
        if names := config.get("architectures"):
            return getattr(tf, names[0])(c)
        return tf.AutoModelForCausalLM.from_config(c)


def published(m, state):
    """The tensors under the names of published files, which transformers 5 renames, splits and joins when it loads them."""
    return revert_weight_conversion(m, {k: t.detach() for k, t in state.items()})


def stored(m):
    """Names and shapes of the tensors of a saved file: what is tied is there once, under the name that stays."""
    seen, out = {}, {}
    tied = set(m.all_tied_weights_keys)
    state = m.state_dict(keep_vars=True)
    for name in sorted(state, key=lambda n: (n in tied, n)):
        t = state[name]
        if isinstance(t, torch.nn.Parameter) and id(t) in seen:
            continue
        seen[id(t)] = name
        out[name] = t
    return {name: list(t.shape) for name, t in published(m, out).items()}


def ranges(numbers):
    """Runs of successive numbers, as (first, one past the last)."""
    runs = []
    for n in sorted(numbers):
        if runs and runs[-1][1] == n:
            runs[-1][1] = n + 1
        else:
            runs.append([n, n + 1])
    return [f"{{{a}..{b}}}" if b - a > 1 else str(a) for a, b in runs]


def folded(shapes):
    """Lines of name template and shape, with {a..b} for layers and experts."""
    groups = collections.defaultdict(lambda: collections.defaultdict(set))
    for name, shape in shapes.items():
        nums = [int(n) for n in re.findall(r"(?<=\.)\d+(?=\.)", name)]
        template = re.sub(r"(?<=\.)\d+(?=\.)", "#", name)
        groups[template, tuple(shape)][tuple(nums[1:])].add(nums[0] if nums else -1)
    lines = []
    for (template, shape), by_rest in groups.items():
        dims = " ".join(map(str, shape))
        by_layers = collections.defaultdict(set)
        for rest, layers in by_rest.items():
            by_layers[tuple(sorted(layers))].add(rest)
        for layers, rests in by_layers.items():
            if layers == (-1,):
                lines.append((template, dims))
                continue
            tails = [()] if rests == {()} else None
            if tails is None:
                assert all(len(r) == 1 for r in rests), template
                tails = [(t,) for t in ranges(r[0] for r in rests)]
            for head in ranges(layers):
                for tail in tails:
                    name = template
                    for part in (head, *tail):
                        name = name.replace("#", part, 1)
                    lines.append((name, dims))
    return sorted(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("config")
    p.add_argument("--dtype", help="element type; default: torch_dtype of config.json")
    args = p.parse_args()
    config = json.load(open(args.config))
    dtype = args.dtype or DTYPES[config.get("torch_dtype") or config.get("dtype", "float32")]
    for name, dims in folded(stored(model(config))):
        print(name, dtype, dims)


if __name__ == "__main__":
    main()
