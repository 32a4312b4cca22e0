#!/usr/bin/env python3
"""Checks and measures the CUDA target on this machine's GPU. It runs from an unpacked archive of script/gpu-bundle, and needs
Python 3.8 or newer, the driver and nothing else; nvcc, PyTorch, ncu and compute-sanitizer are used if they are here.

  python3 run.py [--out DIR] [--budget SECONDS] [--longest SECONDS]

Results are lines of JSON, one file for each stage, in DIR ($OUT, or gpu-results). script/gpu-report makes a page of them. The
most valuable steps run first. A step that fails, hangs or does not fit into the budget is recorded, and the others run."""
import argparse
import concurrent.futures
import glob
import json
import os
import platform
import shutil
import sys
import time

import measure
from runner import Log, Runner, python

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds that each stage may use of a budget of 480; what earlier stages leave is free for later ones.
STAGES = [("machine", 30), ("correct", 110), ("speed", 260), ("peer", 45), ("cpu", 60), ("ncu", 90), ("sanitizer", 120)]


class Bundle:
    """What the archive contains, and the calls of its binaries."""

    def __init__(self, folder):
        with open(os.path.join(folder, "bundle.json")) as f:
            plan = json.load(f)
        self.folder, self.commit, self.emulated, self.prompt = folder, plan["commit"], plan["emulated"], plan["prompt"]
        self.sizes, self.demos, self.shapes = plan["sizes"], plan["demos"], plan["shapes"]

    def binary(self, model):
        return os.path.join(self.folder, "bin", model["name"])

    def logits(self, model, device, *more):
        return [self.binary(model), "logits", "-p", self.prompt, "--device", device, *more]

    def generate(self, model, device, *more):
        return [self.binary(model), "generate", "-p", self.prompt, "-n", self.sizes["tokens"], "--temp", "0", "--json", "--device", device, *more]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", default=os.environ.get("OUT") or "gpu-results", metavar="DIR")
    ap.add_argument("--budget", type=float, default=480, metavar="SECONDS", help="for everything (480)")
    ap.add_argument("--longest", type=float, default=120, metavar="SECONDS", help="for one step (120)")
    a = ap.parse_args()
    log = Log(os.path.abspath(a.out))
    run, bundle = Runner(log, a.budget, a.longest), Bundle(HERE)
    work = {"machine": machine, "correct": correct, "peer": peer, "speed": measure.speed, "cpu": measure.cpu, "ncu": measure.ncu, "sanitizer": measure.sanitizer}
    for stage, seconds in STAGES:
        run.begin(seconds * a.budget / 480)
        try:
            work[stage](run, bundle)
        except Exception as e:  # a fault of this driver ends a stage, never the run
            log.write(stage, {"step": stage, "status": "failed", "error": "%s: %s" % (type(e).__name__, e)})
    log.write("machine", {"step": "end", "status": "ok", "seconds": round(time.monotonic() - run.start, 1), "signal": run.stopped})
    for model in bundle.shapes:
        for path in glob.glob(glob.escape(bundle.binary(model)) + ".weights*"):  # also a part, of a step that was ended
            remove(path)
    run.close()
    try:
        lines = summary(log.records)
        print(lines, end="", flush=True)
        with open(os.path.join(log.folder, "summary.txt"), "w") as f:
            f.write(lines)
    except Exception as e:  # the results are in the files
        print("no summary: %s: %s" % (type(e).__name__, e), file=sys.stderr)
    sys.exit(128 + run.stopped if run.stopped else 0)


def remove(path):
    try:
        os.remove(path)
    except OSError:
        pass


# --- machine ------------------------------------------------------------------------------------------------------


def machine(run, bundle):
    log = run.log
    log.write("machine", {
        "step": "host", "status": "ok", "commit": bundle.commit, "emulated": bundle.emulated, "time": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "cores": len(os.sched_getaffinity(0)), "cpu": cpu_name(), "memory_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        "disk_gb": shutil.disk_usage(bundle.folder).free / 1e9, "system": platform.platform(), "python": platform.python_version(),
    })
    fields = ["name", "driver_version", "compute_cap", "memory.total", "clocks.max.sm", "clocks.max.mem", "power.limit", "ecc.mode.current", "pstate"]
    gpu = lambda said, err: {"gpu": dict(zip(fields, (v.strip() for v in said.splitlines()[0].split(","))))}
    run.step("machine", "nvidia-smi", ["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"], 20, gpu)
    last = lambda said, err: {"version": said.strip().splitlines()[-1]}
    for tool in ("nvcc", "ncu", "compute-sanitizer"):
        run.step("machine", tool, [tool, "--version"], 20, last)
    torch = "import json, torch; print(json.dumps({'version': torch.__version__, 'cuda': torch.version.cuda}))"
    absent = lambda said, err: {"status": "missing", "error": "no PyTorch"} if "No module named" in err else json.loads(said)
    run.step("machine", "torch", [python(), "-c", torch], 30, absent)


def cpu_name():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


# --- correct ------------------------------------------------------------------------------------------------------


def correct(run, bundle):
    """The demo model on the CPU and on the GPU, by every implementation of its matmuls; several types at a time."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        for model, done in [(m, pool.submit(correct_type, run, bundle, m)) for m in bundle.demos]:
            try:
                done.result()
            except Exception as e:  # the other types go on
                run.log.write("correct", {"step": "type", "status": "failed", "type": model["type"], "error": "%s: %s" % (type(e).__name__, e)})


def correct_type(run, bundle, model):
    t = model["type"]
    step = lambda name, argv, parse, timeout=30, **more: run.step("correct", name, argv, timeout, parse, type=t, **more)
    want = {}
    step("logits on the CPU", bundle.logits(model, "cpu", "--threads", 2), lambda said, err: want.update(logits=json.loads(said)["logits"][0]) or {})
    step("tokens on the CPU", bundle.generate(model, "cpu", "--threads", 2), lambda said, err: want.update(tokens=json.loads(said)["tokens"]) or {})
    path = os.path.join(run.scratch, model["name"] + ".profile")
    tuned = step("implementations", [bundle.binary(model), "tune", "--device", "cuda", "--rows", "1,4", "--budget", "1ms", "-o", path],
                 lambda said, err: {"impls": impls(path)}, timeout=60)
    for impl in ["estimate"] + tuned.get("impls", []):
        profile = []
        if impl != "estimate":
            profile = ["--profile", only(impl, path)]
        step("logits", bundle.logits(model, "cuda", *profile), lambda said, err: measure.compare(want, json.loads(said)["logits"][0]), impl=impl)
        for launch, off in (("graphs", None), ("no graphs", "GRAPHS"), ("no early launch", "EARLY")):
            step("tokens", bundle.generate(model, "cuda", *profile), lambda said, err: agree(want, json.loads(said)["tokens"]),
                 impl=impl, launch=launch, env={"IFLOWC_CUDA_" + off: "0"} if off else {})


def impls(path):
    """The implementations that a profile has measured."""
    with open(path) as f:
        shapes = json.load(f)["shapes"]
    return list(dict.fromkeys(t["impl"] for s in shapes for t in s["measured"]["impls"]))


def only(impl, path):
    """A profile that uses one implementation for every matmul that has it."""
    with open(path) as f:
        p = json.load(f)
    for s in p["shapes"]:
        if any(t["impl"] == impl for t in s["measured"]["impls"]):
            s["rules"] = [{"rows": 1, "impl": impl}]
    out = "%s.%s" % (path, impl)
    with open(out, "w") as f:
        json.dump(p, f)
    return out


def agree(want, got):
    """How many of the CPU's greedy tokens come first. Rounding may turn two equally likely ones, so others are no failure."""
    tokens = want.get("tokens", [])
    first = next((i for i, (a, b) in enumerate(zip(tokens, got)) if a != b), min(len(tokens), len(got)))
    return {"agree": first, "of": len(tokens)}


# --- peer ---------------------------------------------------------------------------------------------------------


def peer(run, bundle):
    if not bundle.shapes:
        return run.skip("peer", "torch", "the bundle has no shape")
    matmuls = {}
    run.step("peer", "shapes", [bundle.binary(bundle.shapes[0]), "info", "--json"], 20, lambda said, err: matmuls.update(measure.matmuls(json.loads(said))) or {"matmuls": list(matmuls.values())})
    shapes = ";".join(sorted({"%d,%d" % (m["n"], m["k"]) for m in matmuls.values()}))
    if shapes:
        lines = lambda said, err: {"measured": [json.loads(line) for line in said.splitlines() if line.endswith("}")]}
        rows = ",".join(map(str, bundle.sizes["peer_rows"]))
        run.step("peer", "torch", [python(), os.path.join(HERE, "peer.py"), shapes, rows], 60, lines, need=15)


# --- summary ------------------------------------------------------------------------------------------------------


def summary(records):
    """One screen: what is right, what is fast, what failed."""
    out = []
    host = next((r for r in records if r["step"] == "host"), {})
    gpu = next((r["gpu"]["name"] for r in records if "gpu" in r), "the emulation" if host.get("emulated") else "no GPU")
    end = records[-1] if records[-1]["step"] == "end" else {}
    out.append("%s, commit %s, %s s" % (gpu, host.get("commit"), end.get("seconds", "?")))
    checks = [r for r in records if r["step"] in ("logits", "shape logits")]
    worst = max((r["relative"] for r in checks if "relative" in r), default=None)
    out.append("logits: %d of %d are close to the CPU's%s" % (
        sum(r["status"] == "ok" for r in checks), len(checks), "" if worst is None else "; the largest difference is %.1e" % worst))
    tokens = [r for r in records if r["step"] == "tokens" and "agree" in r]
    out.append("tokens: %d of %d runs give the CPU's greedy tokens" % (sum(r["agree"] == r["of"] for r in tokens), len(tokens)))
    for r in records:
        for row in r.get("bench", []):
            where = "depth %d" % r["depth"] if "depth" in r else "%d threads" % r["threads"] if "threads" in r else ""
            out.append("%-8s %-9s %s batch %-3d %9.1f tok/s %8.1f GB/s  %s" % (r["type"], r["dispatch"], row["test"].rjust(6), row["batch"], row["tok_s"]["median"], row["gb_s"], where))
        for m in r.get("measured", []):
            if "gb_s" in m and m["measure"] != "linear":
                out.append("PyTorch %s: %.0f GB/s" % (m["measure"], m["gb_s"]))
    states = {}
    for r in records:
        states.setdefault(r["status"], []).append("%s/%s" % (r["stage"], r["step"]))
    out.append("steps: " + ", ".join("%d %s" % (len(v), k) for k, v in sorted(states.items())))
    for state in sorted(set(states) - {"ok"}):
        out.append("  %s: %s" % (state, ", ".join(dict.fromkeys(states[state]))))
    return "\n".join(line.rstrip() for line in out) + "\n"


if __name__ == "__main__":
    main()
