"""llama.cpp through llama-cpp-python's low-level API: see bench-baselines for the protocol of a baseline."""

import ctypes
import pathlib
import sys
import time

import llama_cpp as ll

from baseline import serve, token

QUIET = ll.llama_log_callback(lambda level, text, data: None)


def quantize(source: str, target: str, kind: str) -> None:
    """Writes target in one of llama.cpp's types, every matrix of it ("pure")."""
    p = ll.llama_model_quantize_default_params()
    p.ftype, p.allow_requantize = getattr(ll, "LLAMA_FTYPE_MOSTLY_" + kind.upper()), True
    p.pure = True
    part = pathlib.Path(target).with_suffix(".part")
    if rc := ll.llama_model_quantize(source.encode(), str(part).encode(), ctypes.byref(p)):
        sys.exit(f"llama_model_quantize: {rc}")
    part.rename(target)


class Model:
    def __init__(self, path: str, threads: int, context: int = 8320):
        mp = ll.llama_model_default_params()
        mp.n_gpu_layers = 0
        self.model = ll.llama_model_load_from_file(path.encode(), mp)
        if not self.model:
            sys.exit(f"{path}: llama.cpp cannot load it")
        self.threads = threads
        self.context = None
        self.shape = None
        self.vocab = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(self.model))

    def open(self, rows: int, seqs: int) -> None:
        """A context of `rows` positions for each of `seqs` sequences."""
        if self.shape == (rows, seqs):
            ll.llama_memory_clear(ll.llama_get_memory(self.context), True)
            return
        if self.context:
            ll.llama_free(self.context)
        cp = ll.llama_context_default_params()
        cp.n_ctx, cp.n_seq_max = rows * seqs, seqs
        cp.n_batch = cp.n_ubatch = 512
        cp.n_threads = cp.n_threads_batch = self.threads
        self.context, self.shape = ll.llama_init_from_model(self.model, cp), (rows, seqs)

    def decode(self, entries: list) -> None:
        """One step of (token, position, sequence, wanted) entries."""
        b = ll.llama_batch_init(len(entries), 0, 1)
        b.n_tokens = len(entries)
        for i, (t, pos, seq, want) in enumerate(entries):
            b.token[i], b.pos[i], b.n_seq_id[i], b.seq_id[i][0], b.logits[i] = t, pos, 1, seq, want
        rc = ll.llama_decode(self.context, b)
        ll.llama_synchronize(self.context)
        ll.llama_batch_free(b)
        if rc:
            sys.exit(f"llama_decode: {rc}")

    def prefill(self, n: int, batch: int) -> float:
        self.open(max(n, 64), batch)
        start = time.perf_counter()
        for seq in range(batch):
            for lo in range(0, n, 512):
                hi = min(n, lo + 512)
                self.decode([(token(seq, i, self.vocab), i, seq, int(i == n - 1)) for i in range(lo, hi)])
        return n * batch / (time.perf_counter() - start)

    def generate(self, n: int, batch: int, past: int = 0) -> float:
        self.open(n + past + 1, batch)
        if past:
            for seq in range(batch):
                for lo in range(0, past, 512):
                    self.decode([(token(seq, i, self.vocab), i, seq, 0) for i in range(lo, min(past, lo + 512))])
        start = time.perf_counter()
        for i in range(past, past + n):
            self.decode([(token(seq, i, self.vocab), i, seq, 1) for seq in range(batch)])
        return n * batch / (time.perf_counter() - start)


if __name__ == "__main__":
    ll.llama_log_set(QUIET, ctypes.c_void_p(0))
    ll.llama_backend_init()
    if sys.argv[1] == "quantize":
        quantize(*sys.argv[2:])
    else:
        serve(Model(sys.argv[1], int(sys.argv[2])))
