"""The arguments that the trainers of heads share."""

import argparse
import math
import pathlib


def parser(description, model, parts="step", **defaults):
    """Arguments with these defaults; model says what is read of it, parts what the decay counts."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, type=pathlib.Path, help="collect.py's folder")
    p.add_argument("--model", required=True, type=pathlib.Path, help=model)
    p.add_argument("--out", required=True, type=pathlib.Path)
    p.add_argument("--common", type=int, default=0, help="train on so many common tokens and a sample of the others; 0: on all that are proposed")
    p.add_argument("--drawn", type=int, default=512, help="size of that sample")
    p.add_argument("--decay", type=float, default=0.8, help=f"a {parts}'s loss counts so much of the one before it")
    p.add_argument("--init", type=pathlib.Path, help="a checkpoint of the same shape to go on from")
    p.add_argument("--epochs", type=float, default=4)
    p.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    p.add_argument("--batch", type=int, default=512, help="rows per step, or for eagle.py texts")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--weight-decay", type=float, default=0.01)
    p.add_argument("--bf16", action="store_true", help="multiply in bfloat16")
    p.add_argument("--hold", type=int, default=20, help="hold out every so manyth text")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.set_defaults(**defaults)
    return p
