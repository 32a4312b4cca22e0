#!/usr/bin/env python3
"""What transformers computes as embeddings of 100 texts in float32: the reference of script/compare-reference.

Usage: minilm.py FOLDER --out PATH. FOLDER is a model of mean pooling and normalization, such as all-MiniLM-L6-v2. Of each
embedding every eighth value is kept.
"""

import argparse
import json
import pathlib

import torch
import transformers

import strings
from record import Record

TEXTS = [
    "The weather is lovely today.", "It is so sunny outside!", "He drove to the stadium.", "A man is playing a guitar.",
    "Ein Vogel singt im Garten.", "Le chat dort sur le canapé.", "机器翻译很有用。", "Привет, как дела?", "مرحبا بالعالم",
    "def add(a, b):\n    return a + b", "SELECT name FROM users WHERE age > 30;", "https://example.org/a/b?c=1&d=2",
    "a", "!", "42", "3.14159 2,718", "CamelCase snake_case kebab-case", "I can't, won't and shouldn't.", "naïve café résumé",
    "The quick brown fox jumps over the lazy dog. " * 5, "word " * 300,  # the last is cut
]

COUNT, STEP = 100, 8


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


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("folder", type=pathlib.Path)
    ap.add_argument("--out", type=pathlib.Path, required=True)
    args = ap.parse_args()
    torch.set_num_threads(2)
    batch = texts(COUNT)
    embeddings = reference(args.folder, batch)
    columns = list(range(0, embeddings.shape[1], STEP))
    rec = Record(family="bert", variant="all-minilm-l6-v2", task="embedding", model_class="BertModel", weights={"format": "safetensors"},
                 versions={"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__})
    rec.doc["inputs"] = {"texts": batch, "columns": columns}
    rec.array("embeddings", embeddings[:, columns])
    rec.write(args.out)


if __name__ == "__main__":
    main()
