"""Writes tiktoken.json: folders with tokenizers of tiktoken and tekken, and what tiktoken 0.14 and mistral-common 1.13 make of texts.

Usage: python generate_tiktoken.py   (needs tokenizers, tiktoken, mistral-common)
The ranks are those of a byte-level BPE trained on CORPUS. Format: as slow.json."""
import base64, json, pathlib, tempfile

import tiktoken
from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
CORPUS = [
    "The compiler reads a description of the computation and writes a program.", "the quick brown fox jumps over the lazy dog and then it runs away",
    "def add(a, b):\n    return a + b\n", "x1 = 12 + 345; y2 = 6789", "Größe, Straße, Übung. El niño comió pan; la niña bebió café.",
    "天亮以前港口很安静，只有海鸥看见船回来了。", "it's what we're saying, they've said I'll do it, don't you",
] * 4
TEXTS = ["", " ", "Hello, world!", "  two  spaces   three ", "tab\tand\r\nnew\n\n\nlines \n end\n ", "It's we're I'LL don't", "12345 6,789.01 1e-5",
         "Größe STRASSE", "天亮以前かな한국어", "e\u0301 A\u030angstro\u0308m", "😀 👨‍👩‍👧 end", "a<|im_start|>b<s>c", "the the the compilercompiler", "def f():\n        return 1"]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def ranks(size):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    of = {}
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    for i, b in enumerate(keep + [b for b in range(256) if b not in keep]):
        of[chr(b) if i < len(keep) else chr(256 + i - len(keep))] = b
    words = [bytes(of[c] for c in t) for t, _ in sorted(tok.get_vocab().items(), key=lambda x: x[1])]
    return [bytes([b]) for b in range(256)] + [w for w in words if len(w) > 1]


def folder(name, file, files, size, encode, decode):
    ids = [encode(t) for t in TEXTS]
    # of None no ids are compared
    return {"Name": name, "Model": name, "File": file, "Files": files, "Size": size, "IDs": ids, "Decoded": [decode(x or [], False) for x in ids], "Skipped": [decode(x or [], True) for x in ids]}


def with_tiktoken(name, file, words, pattern, special, files):
    enc = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks={w: i for i, w in enumerate(words)}, special_tokens=special)
    import unicodedata
    norm = (lambda t: unicodedata.normalize("NFC", t)) if file == "qwen.tiktoken" else (lambda t: t)
    hidden = set(special.values())
    return folder(name, file, files, len(words) + len(special), lambda t: enc.encode(norm(t), allowed_special="all"),
                  lambda ids, skip: enc.decode([i for i in ids if not (skip and i in hidden)]))


def main():
    words = ranks(420)
    lines = "".join(f"{base64.b64encode(w).decode()} {i}\n" for i, w in enumerate(words))
    n = len(words)
    llama = {"<s>": n, "<|im_start|>": n + 5}  # ids between them are free
    config = {"added_tokens_decoder": {str(i): {"content": t, "special": True, "normalized": False} for t, i in llama.items()}}
    qwen = {t: n + i for i, t in enumerate(["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205))])}
    special = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    tekken = {"config": {"pattern": TEKKEN, "num_vocab_tokens": n, "default_vocab_size": n + 8, "default_num_special_tokens": 10, "version": "v7"},
              "vocab": [{"rank": i, "token_bytes": base64.b64encode(w).decode(), "token_str": None} for i, w in enumerate(words)],
              "special_tokens": [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(special)]}
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "tekken.json"
        path.write_text(json.dumps(tekken))
        tek = Tekkenizer.from_file(path)
    out = {
        "Texts": TEXTS,
        "Models": {name: base64.b64encode(data.encode()).decode() for name, data in {"llama": lines, "named": lines, "qwen": lines, "tekken": json.dumps(tekken)}.items()},
        "Folders": [
            with_tiktoken("llama", "tokenizer.model", words, LLAMA3, llama, {"tokenizer_config.json": json.dumps(config)}),
            with_tiktoken("named", "tiktoken.model", words, LLAMA3, llama, {"tokenizer_config.json": json.dumps(config)}),
            with_tiktoken("qwen", "qwen.tiktoken", words, QWEN, qwen, {}),
        ],
    }
    # texts cannot contain special tokens in mistral-common: those texts are left to the others
    plain = lambda t: "<s>" in t
    tf = folder("tekken", "tekken.json", {}, tek.n_words, lambda t: None if plain(t) else tek.encode(t, bos=True, eos=False),
                lambda ids, skip: tek.decode(ids, special_token_policy=SpecialTokenPolicy.IGNORE if skip else SpecialTokenPolicy.KEEP))
    out["Folders"].append(tf)
    (HERE / "tiktoken.json").write_text(json.dumps(out, ensure_ascii=False, separators=(",", ":")) + "\n")


main()
