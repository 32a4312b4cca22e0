"""Continues a text with a model that iflowc compile --emit lib made, and nothing but the standard library:

    iflowc compile demo --emit lib -o libdemo.so
    python3 generate.py ./libdemo.so "Once upon a time"
"""
import ctypes
import json
import sys

PIECE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)


class Model:
    """A model in a shared library, with its weights beside it."""

    def __init__(self, path, **options):
        self.lib = lib = ctypes.CDLL(path)
        failed = ctypes.POINTER(ctypes.c_void_p)
        lib.iflowc_open.restype = ctypes.c_size_t
        lib.iflowc_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, failed]
        lib.iflowc_close.argtypes = [ctypes.c_size_t]
        lib.iflowc_generate.argtypes = [ctypes.c_size_t, ctypes.c_char_p, ctypes.c_char_p, PIECE, ctypes.c_void_p, failed]
        lib.iflowc_embed.argtypes = [ctypes.c_size_t, ctypes.c_char_p, ctypes.POINTER(ctypes.c_float), ctypes.c_int32, failed]
        lib.iflowc_free.argtypes = [ctypes.c_void_p]
        error = ctypes.c_void_p()
        self.model = lib.iflowc_open((path + ".weights").encode(), json.dumps(options).encode(), error)
        if not self.model:
            raise self.problem(error)

    def problem(self, error):
        text = ctypes.string_at(error.value).decode()
        self.lib.iflowc_free(error)
        return RuntimeError(text)

    def generate(self, prompt, piece, **options):
        """Calls piece with every bit of text; a true answer ends the generation."""
        error = ctypes.c_void_p()
        call = PIECE(lambda _, text: 1 if piece(text.decode()) else 0)
        if self.lib.iflowc_generate(self.model, prompt.encode(), json.dumps(options).encode(), call, None, error):
            raise self.problem(error)

    def embed(self, text):
        """The text's vector, of length 1."""
        size = 16384
        out, error = (ctypes.c_float * size)(), ctypes.c_void_p()
        n = self.lib.iflowc_embed(self.model, text.encode(), out, size, error)
        if n < 0:
            raise self.problem(error)
        return out[:n]

    def close(self):
        self.lib.iflowc_close(self.model)


if __name__ == "__main__":
    model = Model(sys.argv[1], threads=2)
    model.generate(sys.argv[2], lambda text: print(text, end="", flush=True), max_tokens=48)
    print()
    model.close()
