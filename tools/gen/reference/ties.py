"""Finds equal scores at the last row that sparse attention chooses. iflowc then takes the first of them and torch.topk any, so
no model with such a choice is recorded."""

import contextlib

import torch

NEAR = 1e-6  # of the largest score; less may be rounding
HIDDEN = -1e30  # masks put rows that cannot be seen at or near the lowest number


@contextlib.contextmanager
def watch(model):
    """Yields a list that gets a line for each choice between scores that are too near while the model runs."""
    found, inside, topk = [], [], torch.Tensor.topk

    def watched(scores, k, *args, **kw):
        if inside and k < scores.shape[-1]:
            best, seen = topk(scores, k + 1, dim=-1).values, scores > HIDDEN
            gap, largest = best[..., k - 1] - best[..., k], torch.where(seen, scores, 0).abs().amax(-1)
            near = (best[..., k] > HIDDEN) & (gap <= NEAR * largest)
            if near.any():
                found.append(f"{inside[-1]} chooses between equal scores at {near.nonzero()[0].tolist()}")
        return topk(scores, k, *args, **kw)

    hooks = []
    for name, m in model.named_modules():
        if type(m).__name__.endswith("Indexer"):
            hooks += [m.register_forward_pre_hook(lambda *_, name=name: inside.append(name)), m.register_forward_hook(lambda *_: inside.pop() and None)]
    torch.Tensor.topk = watched
    try:
        yield found
    finally:
        torch.Tensor.topk = topk
        for h in hooks:
            h.remove()
