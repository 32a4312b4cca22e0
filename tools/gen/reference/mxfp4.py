"""gpt-oss checkpoints store experts as MXFP4 (OCP Microscaling Formats 1.0, §5.2): 4-bit floats of which 32 share a power
of two. `_blocks` holds two values a byte, the first in the low bits, `_scales` the exponents plus 127."""

import json
import pathlib

import torch
from safetensors.torch import load_file, save_file

VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
MATRICES = ("gate_up_proj", "down_proj")


def encode(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[…, n] floats to blocks […, n/32, 16] and scales […, n/32]."""
    x = w.reshape(*w.shape[:-1], -1, 32)
    exponent = torch.floor(torch.log2(x.abs().amax(-1).clamp(min=1e-30))) - 2
    y = torch.ldexp(x, -exponent[..., None].to(torch.int32))
    code = (y.abs()[..., None] - VALUES).abs().argmin(-1) + 8 * (y < 0)
    code = code.to(torch.uint8)
    return code[..., 0::2] | code[..., 1::2] << 4, (exponent + 127).to(torch.uint8)


def decode(blocks: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    code = torch.stack([blocks & 15, blocks >> 4], -1).flatten(-2)
    x = VALUES[(code & 7).long()] * torch.where(code >= 8, -1.0, 1.0)
    return torch.ldexp(x, (scales.to(torch.int32) - 127)[..., None]).flatten(-2)


@torch.no_grad()
def round_experts(model) -> None:
    """Rounds the experts to what MXFP4 holds; blocks run along the inputs, which are the second index."""
    for name, p in model.named_parameters():
        if name.endswith(MATRICES):
            p.copy_(decode(*encode(p.transpose(1, 2).contiguous())).transpose(1, 2))


def pack_experts(out: pathlib.Path) -> None:
    """Rewrites the folder as the published checkpoints are: outputs first, blocks and scales."""
    path = out / "model.safetensors"
    packed = {}
    for name, w in load_file(path).items():
        if name.endswith(MATRICES):
            packed[name + "_blocks"], packed[name + "_scales"] = encode(w.float().transpose(1, 2).contiguous())
        else:
            packed[name] = w
    save_file(packed, path, metadata={"format": "pt"})
    config = json.loads((out / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
