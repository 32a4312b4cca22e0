#!/usr/bin/env python3
"""Compares methods of speculative decoding on greedy texts, interleaved. Prints a table: tokens per step, drafted tokens per step, speed
relative to the first method, and whether all methods wrote the same text. Without --batches each text is one run of `BIN generate`.
With --batches, each method has a server, which gets that many requests at once; the gain is the median of the rounds.

A method is what --speculate accepts, or BIN:METHOD for another binary of the same model. A draft model follows a plus sign:
draft+DRAFT."""

import argparse
import concurrent.futures
import json
import pathlib
import re
import statistics
import subprocess
import time
import urllib.request

import prompts


def flags(args, method: str) -> tuple:
    """The binary of a method and the flags that select it."""
    binary, _, method = method.rpartition(":")
    method, _, draft = method.partition("+")
    return binary or args.bin, ["--speculate", method, *(["--draft", draft] if draft else [])]


def run(args, prompt: str, method: str) -> dict:
    binary, chosen = flags(args, method)
    command = [binary, "generate", "-p", prompt, "-n", str(args.tokens), *chosen, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{binary}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def alone(args, methods: list, lines: list) -> None:
    total = {m: dict(tokens=0, steps=0, drafted=0, seconds=0.0) for m in methods}
    differ = 0
    for line in lines:
        wrote = {}
        for m in methods:
            said = run(args, line, m)
            t, n, x = said["timings"], len(said["tokens"]) - 1, total[m]
            if n < 1:
                continue
            wrote[m] = said["tokens"]
            x["tokens"] += n
            x["steps"] += t["steps"]
            x["drafted"] += t["drafted"]
            x["seconds"] += n / t["gen_tok_s"]
        differ += any(w != wrote[methods[0]] for w in wrote.values())
    print("| method | tokens per step | drafted per step | tok/s | gain |\n|---|---|---|---|---|")
    for m, x in total.items():
        print(f"| {m} | {x['tokens'] / x['steps']:.2f} | {x['drafted'] / x['steps']:.1f} | {x['tokens'] / x['seconds']:.0f} | {total[methods[0]]['seconds'] / x['seconds']:.2f} |")
    print(f"texts that differ: {differ}")


class Service:
    def __init__(self, args, method: str, most: int):
        binary, chosen = flags(args, method)
        command = [binary, "serve", "--port", "0", "--log", "none", "--context", "1024", "--parallel", str(most), *chosen]
        self.tokens, self.process = args.tokens, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"listening at (http://\S+)", line):
                self.address = found[1]
                return
        raise SystemExit(f"{binary} serve --speculate {method} ended")

    def ask(self, prompt: str) -> tuple:
        body = dict(prompt=prompt, max_tokens=self.tokens, temperature=0)
        request = urllib.request.Request(self.address + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            said = json.load(answer)
        return said["choices"][0]["text"], said["usage"]["completion_tokens"]

    def round(self, texts: list) -> tuple:
        begin = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(len(texts)) as pool:
            out = list(pool.map(self.ask, texts))
        return [t for t, _ in out], sum(n for _, n in out) / (time.perf_counter() - begin)

    def close(self):
        self.process.terminate()
        self.process.stderr.close()
        self.process.wait()


def together(args, methods: list, lines: list, batches: list) -> None:
    services = {m: Service(args, m, max(batches)) for m in methods}
    print("| texts at once | method | tok/s | gain (range) |\n|---|---|---|---|")
    differ = 0
    try:
        for n in batches:
            speeds, gains = {m: [] for m in methods}, {m: [] for m in methods}
            for k in range(args.rounds + 1):
                texts = [lines[(k * n + i) % len(lines)] for i in range(n)]
                turn = methods[k % len(methods):] + methods[: k % len(methods)]  # who is first is not always the same
                said = {m: services[m].round(texts) for m in turn}
                differ += any(said[m][0] != said[methods[0]][0] for m in methods)
                for m in methods if k else []:  # the first round warms up
                    speeds[m].append(said[m][1])
                    gains[m].append(said[m][1] / said[methods[0]][1])
            for m in methods:
                print(f"| {n} | {m} | {statistics.median(speeds[m]):.0f} | {statistics.median(gains[m]):.2f} ({min(gains[m]):.2f}–{max(gains[m]):.2f}) |", flush=True)
    finally:
        for s in services.values():
            s.close()
    print(f"rounds that differ: {differ}")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bin", required=True)
    p.add_argument("--prompts", required=True, type=pathlib.Path, help="one a line")
    p.add_argument("--chat", action="store_true", help="each prompt is a user's turn of a chat")
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--methods", default="none,medusa,auto,lookup")
    p.add_argument("--batches", default="", help="texts at once, as 1,2,4,8")
    p.add_argument("--rounds", type=int, default=5, help="with --batches: how often each number is measured")
    args = p.parse_args()
    lines = [prompts.chatml(line) if args.chat else line for line in args.prompts.read_text().splitlines()]
    if args.batches:
        together(args, args.methods.split(","), lines, [int(n) for n in args.batches.split(",")])
    else:
        alone(args, args.methods.split(","), lines)


if __name__ == "__main__":
    main()
