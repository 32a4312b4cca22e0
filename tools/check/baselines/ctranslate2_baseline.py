"""CTranslate2 as a decoder: ctranslate2_baseline.py MODEL THREADS TYPE, MODEL made by its converter for transformers. See bench-baselines
for the protocol."""

import json
import pathlib
import sys
import time

import ctranslate2

from baseline import serve, token


class Decoder:
    def __init__(self, path: str, threads: int, kind: str):
        self.generator = ctranslate2.Generator(path, device="cpu", compute_type=kind, intra_threads=threads, inter_threads=1)
        self.words = json.loads((pathlib.Path(path) / "vocabulary.json").read_text())

    def prefill(self, n: int, batch: int) -> float:
        """Its forward pass gives logits of every token, which other baselines leave out."""
        ids = [[token(s, i, len(self.words)) for i in range(n)] for s in range(batch)]
        start = time.perf_counter()
        self.generator.forward_batch(ids)
        return n * batch / (time.perf_counter() - start)

    def generate(self, n: int, batch: int) -> float:
        start_tokens = [[self.words[token(s, 0, len(self.words))]] for s in range(batch)]
        start = time.perf_counter()
        self.generator.generate_batch(start_tokens, max_length=n, min_length=n, sampling_topk=1, include_prompt_in_result=False)
        return n * batch / (time.perf_counter() - start)


if __name__ == "__main__":
    serve(Decoder(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
