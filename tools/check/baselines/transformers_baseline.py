"""transformers (PyTorch): a decoder from a GGUF file, or an encoder from a folder. See bench-baselines for the protocol."""

import pathlib
import sys
import time

import torch
from transformers import AutoModel, AutoModelForCausalLM

from baseline import serve, token


class Decoder:
    def __init__(self, path: str, dtype: torch.dtype):
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype).eval()
        self.vocab = self.model.config.vocab_size

    def ids(self, lo: int, hi: int, batch: int) -> torch.Tensor:
        return torch.tensor([[token(s, i, self.vocab) for i in range(lo, hi)] for s in range(batch)])

    @torch.inference_mode()
    def prefill(self, n: int, batch: int) -> float:
        ids = self.ids(0, n, batch)
        start = time.perf_counter()
        self.model(ids, logits_to_keep=1)
        return n * batch / (time.perf_counter() - start)

    @torch.inference_mode()
    def generate(self, n: int, batch: int) -> float:
        past = None
        start = time.perf_counter()
        for i in range(n):
            past = self.model(self.ids(i, i + 1, batch), past_key_values=past, use_cache=True).past_key_values
        return n * batch / (time.perf_counter() - start)


if __name__ == "__main__":
    path, threads, dtype = sys.argv[1], int(sys.argv[2]), getattr(torch, sys.argv[3])
    torch.set_num_threads(threads)
    serve(Decoder(path, dtype))
