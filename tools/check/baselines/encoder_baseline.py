"""Encoders in other runtimes: encoder_baseline.py onnxruntime|openvino|ctranslate2|transformers MODEL THREADS [TYPE]. Sentences of a batch are
padded to the longest, as these runtimes need it, after sorting by length, which loses the least. See bench-baselines for the protocol."""

import sys
import time

import numpy as np

from baseline import serve, token

VOCAB = 30522


class Encoder:
    def __init__(self, run):
        self.run = run

    def encode(self, lengths: list, batch: int) -> float:
        """Sentences per second, all of them, `batch` at a time."""
        if batch > 1:
            lengths = sorted(lengths)
        inputs = []
        for lo in range(0, len(lengths), batch):
            group = lengths[lo:lo + batch]
            ids = np.zeros((len(group), max(group)), np.int64)
            mask = np.zeros_like(ids)
            for row, n in enumerate(group):
                ids[row, :n] = [token(lo + row, i, VOCAB) for i in range(n)]
                mask[row, :n] = 1
            inputs.append((ids, mask))
        start = time.perf_counter()
        for ids, mask in inputs:
            self.run(ids, mask)
        return len(lengths) / (time.perf_counter() - start)


def onnxruntime(path: str, threads: int, _):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda ids, mask: session.run(["hidden"], {"input_ids": ids, "attention_mask": mask})


def openvino(path: str, threads: int, _):
    import openvino as ov

    compiled = ov.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    return lambda ids, mask: request.infer({"input_ids": ids, "attention_mask": mask})


def ctranslate2(path: str, threads: int, kind: str):
    import ctranslate2 as ct

    encoder = ct.Encoder(path, device="cpu", compute_type=kind, intra_threads=threads, inter_threads=1)

    def run(ids, mask):
        lengths = ct.StorageView.from_array(mask.sum(1).astype(np.int32))
        out = encoder.forward_batch(ct.StorageView.from_array(ids.astype(np.int32)), lengths=lengths)
        return np.array(out.last_hidden_state)

    return run


def transformers(path: str, threads: int, kind: str):
    import torch
    from transformers import AutoModel

    torch.set_num_threads(threads)
    model = AutoModel.from_pretrained(path, dtype=getattr(torch, kind)).eval()

    def run(ids, mask):
        with torch.inference_mode():
            return model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).last_hidden_state

    return run


if __name__ == "__main__":
    name, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    kind = sys.argv[4] if len(sys.argv) > 4 else ""
    make = {"onnxruntime": onnxruntime, "openvino": openvino, "ctranslate2": ctranslate2, "transformers": transformers}[name]
    serve(Encoder(make(path, threads, kind)))
