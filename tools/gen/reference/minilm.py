#!/usr/bin/env python3
"""Compares a sentence encoder's binary with transformers: the cosine of the embeddings of 100 texts.

Usage: minilm.py FOLDER --bin BINARY [--limit 1e-4]. FOLDER is a model of mean pooling and normalisation, such as
all-MiniLM-L6-v2; exit code 1 when a cosine is further than the limit from 1.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import torch
import transformers

import strings

TEXTS = [
    "The weather is lovely today.", "It is so sunny outside!", "He drove to the stadium.", "A man is playing a guitar.",
    "Ein Vogel singt im Garten.", "Le chat dort sur le canapé.", "机器翻译很有用。", "Привет, как дела?", "مرحبا بالعالم",
    "def add(a, b):\n    return a + b", "SELECT name FROM users WHERE age > 30;", "https://example.org/a/b?c=1&d=2",
    "a", "!", "42", "3.14159 2,718", "CamelCase snake_case kebab-case", "I can't, won't and shouldn't.", "naïve café résumé",
    "The quick brown fox jumps over the lazy dog. " * 5, "word " * 300,  # the last is cut
]


def texts(count: int) -> list[str]:
    """Varied sentences, then the strings that tokenizers are compared on."""
    out = [t for t in TEXTS + strings.cases(3 * count, ["[SEP]", "[MASK]", "[CLS]"]) if t.strip() and "\0" not in t]
    return list(dict.fromkeys(out))[:count]


@torch.no_grad()
def reference(folder: pathlib.Path, batch: list[str]) -> torch.Tensor:
    tok = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    limit = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    rows = [model(**tok(t, truncation=True, max_length=limit, return_tensors="pt")).last_hidden_state[0].mean(0) for t in batch]
    return torch.nn.functional.normalize(torch.stack(rows), dim=-1)


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("folder", type=pathlib.Path)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--limit", type=float, default=1e-4)
    ap.add_argument("--count", type=int, default=100)
    args = ap.parse_args()
    torch.set_num_threads(2)
    batch = texts(args.count)
    out = subprocess.run([args.bin, "embed", "--json", "--", *batch], capture_output=True, text=True, check=True).stdout
    got = torch.tensor(json.loads(out)["embeddings"])
    cosines = torch.nn.functional.cosine_similarity(got.double(), reference(args.folder, batch).double(), dim=-1)
    worst = int(cosines.argmin())
    print(f"{len(batch)} texts: cosines of at least {cosines[worst]:.8f} (text {batch[worst]!r:.60})")
    return 0 if len(batch) == args.count and cosines[worst] > 1 - args.limit else 1


if __name__ == "__main__":
    sys.exit(main())
