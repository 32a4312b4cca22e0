"""Compares what a model computes under emulation of the CUDA target with what it computes on the CPU."""

import itertools, json, re, tempfile, threading

from .work import ROOT, Failed, Outcome, command

GPUS = "sm_80 sm_86 sm_89 sm_90a sm_100".split()
DEVICES = ["", "0&1", "0;1", "cpu;0", "0;cpu"]
PAIRED = "llama-a qwen2-a bloom-a gemma2-a mixtral-a deepseek_v2-a bert-a t5-a m2m_100-a".split()


class Pairs:
    def __init__(self, models, scratch):
        self.models, self.scratch, self.iflowc, self.building = models, scratch, scratch / "iflowc", threading.Lock()

    def names(self):
        there = [n for n in PAIRED if (self.models / n / "expected.json").exists()]
        return there or ["demo"]

    def rows(self, rng, types, nvcc):
        """Rows of model, type, GPU and devices, each with as many new pairs as can be found."""
        columns = [self.names(), types, GPUS if nvcc else [""], DEVICES]
        open_ = {(i, a, j, b) for i, j in itertools.combinations(range(4), 2) for a in columns[i] for b in columns[j]}
        while open_:
            of = lambda row: {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(4), 2)} & open_
            row = max((tuple(rng.choice(c) for c in columns) for _ in range(60)), key=lambda r: len(of(r)))
            if not of(row):
                i, a, j, b = next(iter(sorted(open_)))
                row = tuple(a if k == i else b if k == j else rng.choice(c) for k, c in enumerate(columns))
            open_ -= of(row)
            yield row

    def run(self, name, quant, gpu, devices):
        """Compares the emulation with the CPU and compiles the kernels with nvcc. TP ranks quantize parts of a row, so their blocks
        differ from the whole row's: the CPU then runs with as many ranks. Pipeline parallelism changes no result."""
        with self.building:
            if not self.iflowc.exists():
                command(["go", "build", "-o", self.iflowc, "./cmd/iflowc"])
        spec = ROOT / "models/demo.yaml" if name == "demo" else self.models / name
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            compile_ = lambda out, *more: command([self.iflowc, "compile", spec, "--quant", quant, "--calibrate", "none", "-o", f"{folder}/{out}", *more])
            try:
                compile_("cpu", *(["--devices", devices] if "&" in devices else []))
                compile_("emu", "--target", "cuda-emu", *(["--devices", devices] if devices else []))
            except Failed as e:
                if devices and re.search(r"cannot be (shared|split)|device groups for|ranks|more than|devices for", str(e)):
                    return Outcome("refused", f"on {devices}")
                raise
            for subcommand in subcommands(spec):
                near(*(numbers(json.loads(command([f"{folder}/{b}", *subcommand, "--json"]))) for b in ("cpu", "emu")), subcommand[0])
            if gpu:
                compile_("gpu", "--target", "cuda", "--arch", gpu)
        return Outcome(passed=1)


def subcommands(spec):
    """What a model is asked, by what it is."""
    if not spec.is_dir():
        return [["logits", "-p", "Once upon a time", "--last", "3"]]
    e = json.loads((spec / "expected.json").read_text())
    ids = lambda of: ",".join(map(str, of))
    if e["task"] == "causal-lm":
        return [["logits", "--ids", ids(e["inputs"]["prompt"]["ids"]), "--last", "3"]]
    if e["task"] == "encoder":
        return [["hidden", "--ids", ids(e["inputs"]["prompt"]["ids"])]]
    return [["logits", "--encoder-ids", ids(e["inputs"]["source"]["ids"]), "--ids", ids(e["inputs"]["decoder"]["ids"]), "--last", "2"]]


def numbers(x):
    if isinstance(x, dict):
        x = x.get("logits", x.get("hidden"))
    return [f for y in x for f in (numbers(y) if isinstance(y, list) else [y])]


def near(want, got, what):
    """Numbers that were rounded to eight bits on the way may have been rounded the other way."""
    worst, limit = max(abs(a - b) for a, b in zip(want, got)), 4e-2 * max(map(abs, want))
    if len(want) != len(got) or not worst <= limit:
        raise Failed(f"{what}: {len(got)} numbers, {len(want)} expected; the largest difference is {worst:.2e}, allowed {limit:.2e}")
