"""Decoders in the generation libraries of two runtimes: genai_baseline.py onnxruntime|openvino FOLDER THREADS, the folder made by
onnxruntime-genai's model builder or by optimum-intel. See bench-baselines for the protocol."""

import json
import pathlib
import sys
import time

import numpy as np

from baseline import serve, token


def prompts(n: int, batch: int, vocab: int) -> np.ndarray:
    return np.array([[token(s, i, vocab) for i in range(n)] for s in range(batch)])


class OnnxRuntime:
    def __init__(self, path: str, threads: int):
        import onnxruntime_genai as og

        self.og = og
        config = og.Config(path)
        config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
        self.model = og.Model(config)
        self.vocab = json.loads((pathlib.Path(path) / "genai_config.json").read_text())["model"]["vocab_size"]

    def start(self, rows: int, batch: int):
        params = self.og.GeneratorParams(self.model)
        params.set_search_options(max_length=rows, min_length=rows, batch_size=batch, do_sample=False)
        return self.og.Generator(self.model, params)

    def prefill(self, n: int, batch: int) -> float:
        generator, ids = self.start(n + 1, batch), prompts(n, batch, self.vocab).astype(np.int32)
        start = time.perf_counter()
        generator.append_tokens(ids)
        generator.generate_next_token()
        return n * batch / (time.perf_counter() - start)

    def generate(self, n: int, batch: int) -> float:
        generator = self.start(n + 1, batch)
        start = time.perf_counter()
        generator.append_tokens(prompts(1, batch, self.vocab).astype(np.int32))
        for _ in range(n):
            generator.generate_next_token()
        return n * batch / (time.perf_counter() - start)


class OpenVINO:
    def __init__(self, path: str, threads: int):
        import openvino
        import openvino_genai as og

        self.og, self.tensor = og, openvino.Tensor
        self.pipe = og.LLMPipeline(path, "CPU", INFERENCE_NUM_THREADS=threads, PERFORMANCE_HINT="LATENCY", ATTENTION_BACKEND="SDPA")
        self.vocab = json.loads((pathlib.Path(path) / "config.json").read_text())["vocab_size"]

    def run(self, rows: int, batch: int, new: int) -> float:
        ids = prompts(rows, batch, self.vocab).astype(np.int64)
        inputs = self.og.TokenizedInputs(self.tensor(ids), self.tensor(np.ones_like(ids)))
        config = self.og.GenerationConfig(max_new_tokens=new, min_new_tokens=new, ignore_eos=True, do_sample=False)
        start = time.perf_counter()
        self.pipe.generate(inputs, config)
        return time.perf_counter() - start

    def prefill(self, n: int, batch: int) -> float:
        return n * batch / self.run(n, batch, 1)

    def generate(self, n: int, batch: int) -> float:
        return n * batch / self.run(1, batch, n)


if __name__ == "__main__":
    serve({"onnxruntime": OnnxRuntime, "openvino": OpenVINO}[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
