#!/usr/bin/env python3
"""Lets a compiled model write answers and keeps its final hidden states: the training set of its Medusa heads.

Texts are made by `BIN serve`, many at once, half of them greedily and half at a temperature, and read again by
`BIN hidden`. Writes DIR/NNNN.npz with ids [T], hidden float16 [T, H] and prompt (how many ids are the prompt's). A run that
was stopped goes on where it was.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import urllib.request

import numpy as np

import prompts


def run(*command: str) -> dict:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} {command[1]}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Service:
    """The compiled model as a service on a free port."""

    def __init__(self, args):
        self.args = args
        command = [args.bin, "serve", "--port", "0", "--log", "none", "--threads", str(args.threads), "--parallel", str(args.at_once),
                   "--queue", str(4 * args.at_once), "--queue-time", "1h", "--timeout", "1h"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"listening at (http://\S+)", line):
                self.address = found[1]
                return
        raise SystemExit(f"{args.bin} serve: {''.join(said).strip()}")

    def text(self, i: int, prompt: str) -> str:
        """The prompt and its answer."""
        body = dict(prompt=prompt, max_tokens=self.args.tokens, temperature=0 if i % 2 == 0 else self.args.temp, seed=i)
        request = urllib.request.Request(self.address + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return prompt + json.load(answer)["choices"][0]["text"]

    def close(self):
        self.process.terminate()
        self.process.stderr.close()
        self.process.wait()


def keep(args, path: pathlib.Path, prompt: str, text: str) -> None:
    ids = run(args.bin, "tokenize", text)["ids"]
    seen = run(args.bin, "hidden", "--ids", ",".join(map(str, ids)), "--threads", str(args.threads))
    hidden = np.asarray(seen["hidden"], dtype=np.float16)
    if len(hidden) != len(ids):
        raise SystemExit(f"{args.bin} hidden: {len(hidden)} rows for {len(ids)} tokens")
    part = path.with_suffix(".part.npz")
    np.savez(part, ids=np.asarray(ids, dtype=np.int32), hidden=hidden, prompt=len(run(args.bin, "tokenize", prompt)["ids"]))
    part.rename(path)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bin", required=True, help="the compiled model")
    p.add_argument("--out", required=True, type=pathlib.Path)
    p.add_argument("--texts", type=int, default=240)
    p.add_argument("--tokens", type=int, default=256, help="maximum tokens of an answer")
    p.add_argument("--temp", type=float, default=0.7, help="temperature of every second text")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--at-once", type=int, default=48, help="texts that are written at once")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--prompts", type=pathlib.Path, help="a file of prompts, one a line, in place of the built-in questions")
    p.add_argument("--plain", dest="chat", action="store_false", help="prompts as they are, not as a turn of a chat")
    args = p.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    asked = args.prompts.read_text().splitlines() if args.prompts else prompts.questions(args.seed)
    todo = {}
    for i, question in enumerate(asked[: args.texts]):
        if not (args.out / f"{i:04d}.npz").exists():
            todo[i] = prompts.chatml(question) if args.chat else question
    service = Service(args)
    try:
        with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
            jobs = {pool.submit(service.text, i, prompt): i for i, prompt in todo.items()}
            for done in concurrent.futures.as_completed(jobs):
                i = jobs[done]
                keep(args, args.out / f"{i:04d}.npz", todo[i], done.result())
    finally:
        service.close()


if __name__ == "__main__":
    main()
