"""Writes runtime/text/grammar/testdata/llguidance.json: what llguidance allows at every step of the texts in
testdata/texts.json, over a vocabulary of all bytes and a few words (the same as the test's).

    pip install llguidance==1.9.1 numpy==2.4.6
    python tools/gen/reference/grammar_masks.py runtime/text/grammar/testdata
"""

import json
import pathlib
import sys

import llguidance
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper


class Vocabulary:
    """All bytes, the words, and an end token (the first of the words)."""

    bos_token_id = None

    def __init__(self, words):
        self.tokens = [bytes([b]) for b in range(256)] + [w.encode() for w in words]
        self.eos_token_id = 256
        self.tokens[256] = b"<eos>"
        self.special_token_ids = [256]

    def __call__(self, text):
        return list(text if isinstance(text, bytes) else text.encode())


def grammar(case):
    if case["kind"] == "schema":
        options = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
        return LLMatcher.grammar_from_json_schema(case["source"], defaults=options)
    if case["kind"] == "regex":
        return LLMatcher.grammar_from_regex(case["source"])
    return LLMatcher.grammar_from_lark(llguidance.gbnf_to_lark.gbnf_to_lark(case["source"]))


def masks(tokenizer, case, text):
    """The allowed tokens before each token of a text, the longest word first; ends after one that is not allowed."""
    matcher = LLMatcher(tokenizer, grammar(case))
    if matcher.get_error():
        raise ValueError(f"{case['name']}: {matcher.get_error()}")
    steps = []
    data = text.encode()
    while True:
        bits = matcher.compute_bitmask()
        steps.append(bits.hex())
        if not data:
            return steps
        token = max((i for i, t in enumerate(vocabulary.tokens) if i != 256 and data.startswith(t)), key=lambda i: (len(vocabulary.tokens[i]), -i))
        if not bits[token // 8] >> token % 8 & 1 or not matcher.consume_token(token):
            return steps
        data = data[len(vocabulary.tokens[token]) :]


folder = pathlib.Path(sys.argv[1])
given = json.loads((folder / "texts.json").read_text())
vocabulary = Vocabulary(given["words"])
tokenizer = LLTokenizer(TokenizerWrapper(vocabulary))
out = []
for case in given["cases"]:
    try:
        out.append({"name": case["name"], "steps": {text: masks(tokenizer, case, text) for text in case["texts"]}})
    except ValueError as error:
        print(error)
(folder / "llguidance.json").write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")
