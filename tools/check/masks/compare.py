"""Measures the masks of iflowc, llguidance and xgrammar on the same tokens, in one interleaved run, and prints tables.

    tools/check/masks/run [--short] [TOKENIZER...]

The program masks samples the texts. It and the other engines take turns: a text with a new grammar (cold), then the same
text with the same grammar (warm). A time is that of one token: its acceptance and the mask after it. It is the median of
several runs, because other programs interrupt some of them. Grammars that take more than a second to compile run once.
"""

import argparse
import base64
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
import types

import llguidance
import llguidance.numpy
import numpy
import tvm_ffi  # before torch is replaced: it asks for its version


class Placeholder(types.ModuleType):
    """A module that xgrammar imports and needs for models on GPUs only: torch and transformers are large."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *_, **__: None})


for name in ("torch", "transformers"):
    sys.modules[name] = Placeholder(name)
import xgrammar  # noqa: E402

now = time.perf_counter_ns


class Refused(Exception):
    """An engine does not allow the next token, or does not compile the grammar."""


def timed(text, fill, accept):
    """The time of the mask before each token, with the acceptance of the token before. It ends where a token is refused."""
    times = []
    began = now()
    for token in text:
        fill()
        times.append(now() - began)
        began = now()
        if not accept(token):
            break
    return times


class Iflowc:
    name = "iflowc"

    def __init__(self, program, path):
        self.process = subprocess.Popen([program, "-vocabulary", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        hello = json.loads(self.process.stdout.readline())
        self.size, self.eos, self.build = hello["tokens"], hello["eos"], hello["build"]

    def ask(self, case, **more):
        self.process.stdin.write(json.dumps({"kind": case["kind"], "source": case["source"], **more}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{case['name']}: the program masks ended")
        return json.loads(line)

    def sample(self, case, seed, tokens):
        return self.ask(case, seed=seed, tokens=tokens)["text"]

    def measure(self, case, text):
        r = self.ask(case, text=text)
        return r["compile"], r["cold"], r["warm"]


class LLGuidance:
    name = "llguidance " + importlib.metadata.version("llguidance")
    bos_token_id = None

    def __init__(self, words, eos):
        began = now()
        self.tokens, self.eos_token_id, self.special_token_ids = words, eos, [eos]
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(self))
        self.build = now() - began
        self.bits = llguidance.numpy.allocate_token_bitmask(1, len(words))

    def __call__(self, text):
        return list(text if isinstance(text, bytes) else text.encode())

    def measure(self, case, text):
        began = now()
        options = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
        grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(case["source"]), defaults=options)
        matcher = llguidance.LLMatcher(self.tokenizer, grammar, log_level=0)
        compiled = now() - began
        if matcher.get_error():
            raise Refused(matcher.get_error())
        fill = lambda: llguidance.numpy.fill_next_token_bitmask(matcher, self.bits)  # noqa: E731
        cold = timed(text, fill, matcher.consume_token)
        matcher.reset()
        return compiled, cold, timed(text, fill, matcher.consume_token)


class XGrammar:
    name = "xgrammar " + importlib.metadata.version("xgrammar")

    def __init__(self, words, eos):
        began = now()
        info = xgrammar.TokenizerInfo(words, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(words), stop_token_ids=[eos])
        self.build = now() - began
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.bits = numpy.full((1, (len(words) + 31) // 32), -1, dtype=numpy.int32)

    def measure(self, case, text):
        began = now()
        try:
            compiled = self.compiler.compile_json_schema(json.dumps(case["source"]), strict_mode=False)
        except RuntimeError as error:
            raise Refused(str(error).splitlines()[-1]) from error
        took = now() - began
        runs = []
        for _ in range(2):
            matcher = xgrammar.GrammarMatcher(compiled)
            runs.append(timed(text, lambda: matcher.fill_next_token_bitmask(self.bits), matcher.accept_token))
        return took, *runs


def quantile(times, q):
    """In milliseconds."""
    return sorted(times)[min(len(times) - 1, int(q * len(times)))] / 1e6 if times else float("nan")


def ms(value):
    return f"{value:.4f}" if value < 0.01 else f"{value:.3f}" if value < 10 else f"{value:.0f}"


def tables(results, cases):
    engines = list(results)
    print("| engine | compile p50 | p99 | cold p50 | p90 | p99 | max | warm p50 | p99 | tokens |\n|---" + "|---:" * 9 + "|")
    for e in engines:
        compiled, cold, warm = ([t for c in results[e].values() for t in c[k]] for k in ("compile", "cold", "warm"))
        row = [quantile(compiled, 0.5), quantile(compiled, 0.99), *(quantile(cold, q) for q in (0.5, 0.9, 0.99, 1)), quantile(warm, 0.5), quantile(warm, 0.99)]
        print(f"| {e} | " + " | ".join(ms(v) for v in row) + f" | {len(cold)} |")
    print("\n| schema | " + " | ".join(f"{e.split()[0]} p50 | p99 | max" for e in engines) + " |\n|---" + "|---:" * 3 * len(engines) + "|")
    for case in cases:
        row = []
        for e in engines:
            cold = results[e].get(case["name"], {}).get("cold", [])
            row += [quantile(cold, q) for q in (0.5, 0.99, 1)]
        print(f"| {case['name']} | " + " | ".join(ms(v) for v in row) + " |")


def compare(program, path, cases, seeds, repeats, tokens):
    ours = Iflowc(program, path)
    words = [base64.b64decode(line.split(b" ")[0]) for line in pathlib.Path(path).read_bytes().splitlines()]
    words += [b""] * (ours.size - len(words))
    words[ours.eos] = b"<|end of text|>"
    engines = [ours, LLGuidance(words, ours.eos), XGrammar(words, ours.eos)]
    print(f"\n{pathlib.Path(path).stem}, {ours.size:,} tokens; the engines' tokenizers take " + ", ".join(f"{e.build / 1e6:.0f} ms ({e.name})" for e in engines) + "\n")
    results = {e.name: {} for e in engines}
    notes = set()
    for seed in range(seeds):
        for i, case in enumerate(cases):
            text = ours.sample(case, seed, tokens)
            runs = {e.name: [] for e in engines}
            for repeat in range(repeats):
                turn = (seed + i + repeat) % len(engines)
                for e in engines[turn:] + engines[:turn]:
                    if repeat and (not runs[e.name] or runs[e.name][0][0] > 1e9):
                        continue
                    try:
                        runs[e.name].append(e.measure(case, text))
                    except Refused as error:
                        notes.add(f"{e.name} refuses the schema of {case['name']}: {error}")
            for e in engines:
                if not runs[e.name]:
                    continue
                compiled, cold, warm = zip(*runs[e.name])
                if len(cold[0]) < len(text):
                    notes.add(f"{e.name} does not allow a token of {case['name']}; its times end there.")
                r = results[e.name].setdefault(case["name"], {"compile": [], "cold": [], "warm": []})
                r["compile"].append(statistics.median(compiled))
                r["cold"] += map(statistics.median, zip(*cold))
                r["warm"] += map(statistics.median, zip(*warm))
    tables(results, cases)
    print("\n" + "\n".join(sorted(notes)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("vocabularies", nargs="+", help=".tiktoken files")
    p.add_argument("--only", default="", help="a part of the names of the schemas to measure")
    p.add_argument("--seeds", type=int, default=12, help="texts of each schema")
    p.add_argument("--repeats", type=int, default=5, help="runs of a text, each with a new grammar; a time is the median")
    p.add_argument("--tokens", type=int, default=150, help="maximum length of a text")
    args = p.parse_args()
    cases = json.loads((pathlib.Path(__file__).parent / "cases.json").read_text())
    cases = [c for c in cases if args.only in c["name"]]
    print(f"{platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; times in ms")
    for path in args.vocabularies:
        compare(args.program, path, cases, args.seeds, args.repeats, args.tokens)


if __name__ == "__main__":
    main()
