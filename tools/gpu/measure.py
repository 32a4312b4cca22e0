"""The stages that measure: speed, cpu, ncu and sanitizer."""
import csv
import json
import os
import re
import shutil

from runner import find

SEED = 1
# Allowed differences of logits, relative to the largest one: activations are rounded to eight bits, and may be rounded the other
# way. With 32 layers of random weights, the CPU's portable and AVX-512 libraries differ by 2.9e-2.
CLOSE, CLOSE_SHAPE = 2e-2, 1e-1
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio$")
# Columns of ncu's sections, by the end of their names, which differ between releases.
COLUMNS = {
    "us": r"gpu__time_duration\.sum$", "dram_percent": r"dram__?throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "sm_percent": r"sm__throughput\.avg\.pct_of_peak_sustained_elapsed$", "occupancy_percent": r"sm__warps_active\.avg\.pct_of_peak_sustained_active$",
    "registers": r"launch__registers_per_thread$", "waves": r"launch__waves_per_multiprocessor$", "blocks": r"launch__grid_size$",
    "issue_percent": r"smsp__issue_active\.avg\.pct_of_peak_sustained_active$|smsp__inst_issued\.avg\.pct_of_peak_sustained_active$",
}
SECTIONS = ["SpeedOfLight", "Occupancy", "LaunchStats", "WarpStateStats", "SchedulerStats"]
MICROSECONDS = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1, "us": 1, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6}


def matmuls(info):
    """The matmuls of a binary's info: size, type, and how often a step runs each."""
    count = {}
    for w in info["weights"]:
        count[w["name"]] = count.get(w["name"], 0) + 1
    return {m["name"]: {"name": m["name"], "n": m["n"], "k": m["k"], "type": m["dtype"], "times": count.get(m.get("weight", ""), 1)} for m in info["matmuls"]}


def compare(want, got, limit=CLOSE):
    """The largest difference of logits, relative to the largest one."""
    if "logits" not in want:
        return {"status": "failed", "error": "the CPU's logits are missing"}
    off = max(abs(a - b) for a, b in zip(want["logits"], got)) / max(map(abs, want["logits"]))
    same = len(want["logits"]) == len(got) and off <= limit
    return {"relative": off, **({} if same else {"status": "failed", "error": "logits differ from the CPU's by %.2e of the largest" % off})}


# --- speed --------------------------------------------------------------------------------------------------------


def speed(run, bundle):
    """Decoding and prefill by the estimated choice of kernels, then by a measured one."""
    there = [m for m in bundle.shapes if weights(run, bundle, m)]
    for model in there:
        shape_logits(run, bundle, model)
        bench_all(run, bundle, model, "estimated", [])
    for model in there[:1]:  # what it brings that a kernel starts before the one in front of it ends
        bench(run, bundle, model, "no early launch", env={"IFLOWC_CUDA_EARLY": "0"})
    for model in there:
        path, size = os.path.join(run.scratch, model["name"] + ".cuda.profile"), bundle.sizes
        r = run.step("speed", "tune", [bundle.binary(model), "tune", "--device", "cuda", "--rows", size["tune_rows"], "--budget", size["tune_budget"], "-o", path],
                     90, lambda said, err: {"profile": load(path)}, need=15, type=model["type"])
        if r["status"] == "ok":
            bench_all(run, bundle, model, "tuned", ["--profile", path])
    if there:  # attention: what a step takes longer with a long context
        path, deep = os.path.join(run.scratch, there[0]["name"] + ".cuda.profile"), bundle.sizes["deep"]
        more = ["--profile", path] if os.path.exists(path) else []
        bench(run, bundle, there[0], "tuned" if more else "estimated", more, depth=deep)


def weights(run, bundle, model):
    """Writes random weights, and says whether they are there."""
    facts = {}
    binary = bundle.binary(model)
    run.step("speed", "info", [binary, "info", "--json"], 20, lambda said, err: facts.update(json.loads(said)) or {
        "weight_bytes": facts["weight_bytes"], "matmuls": list(matmuls(facts).values())}, type=model["type"])
    need, free = facts.get("weight_bytes", 0), shutil.disk_usage(bundle.folder).free
    if need + (1 << 30) > free:
        run.skip("speed", "weights", "%.1f GB of disk are needed, %.1f GB are free" % (need / 1e9, free / 1e9), type=model["type"])
        return False
    r = run.step("speed", "weights", [binary, "weights", "--random", SEED, "--json"], 60, lambda said, err: {"bytes": json.loads(said)["files"][0]["bytes"]},
                 need=10, type=model["type"])
    return r["status"] == "ok"


def shape_logits(run, bundle, model):
    """The kernels of this size compute what the CPU does."""
    want = {}
    ids = ",".join(str(1 + 37 * i) for i in range(8))
    argv = lambda device: [bundle.binary(model), "logits", "--ids", ids, "--device", device]
    run.step("speed", "shape logits on the CPU", argv("cpu"), 60, lambda said, err: want.update(logits=json.loads(said)["logits"][0]) or {}, need=5, type=model["type"])
    run.step("speed", "shape logits", argv("cuda"), 60, lambda said, err: compare(want, json.loads(said)["logits"][0], CLOSE_SHAPE), need=5, type=model["type"])


def bench_all(run, bundle, model, dispatch, more):
    s = bundle.sizes
    bench(run, bundle, model, dispatch, more, prompt=s["prompt"], batches=s["batches"][:1])
    bench(run, bundle, model, dispatch, more, batches=s["batches"][1:])
    if dispatch == "tuned":
        bench(run, bundle, model, dispatch, more, prompt=s["long"], generate=0)


def bench(run, bundle, model, dispatch, more=(), prompt=0, generate=None, batches=(1,), depth=0, env=None):
    """Times the model on the GPU; with a depth, after a context of so many tokens, once."""
    s = bundle.sizes
    argv = [bundle.binary(model), "bench", "--device", "cuda", "--prompt", prompt, "--gen", s["generate"] if generate is None else generate, "--batch", ",".join(map(str, batches))]
    argv += ["--depth", depth, "--reps", 1] if depth else ["--reps", s["reps"]]
    run.step("speed", "bench", [*argv, "--json", *more], 60 if depth else 45, lambda said, err: {"bench": json.loads(said)}, need=15 if depth else 8, env=env,
             type=model["type"], dispatch=dispatch, **({"depth": depth} if depth else {}))


def load(path):
    with open(path) as f:
        return json.load(f)


# --- cpu ----------------------------------------------------------------------------------------------------------


def cpu(run, bundle):
    """Scaling over the cores of this machine, with the first shape."""
    model = with_weights(run, bundle, "cpu")
    cores = len(os.sched_getaffinity(0))
    prompt, generate = bundle.sizes["cpu"]
    for threads in bundle.sizes["threads"]:
        if model and threads <= cores:
            argv = [bundle.binary(model), "bench", "--device", "cpu", "--threads", threads, "--prompt", prompt, "--gen", generate, "--batch", 1, "--reps", 2, "--json"]
            run.step("cpu", "bench", argv, 40, lambda said, err: {"bench": json.loads(said)}, need=5, threads=threads, type=model["type"], dispatch="CPU")
    rebuild(run, bundle)


def with_weights(run, bundle, stage):
    model = next((m for m in bundle.shapes if os.path.exists(bundle.binary(m) + ".weights")), None)
    if model is None:
        run.skip(stage, "bench", "no shape has weights")
    return model


def rebuild(run, bundle):
    """The first demo's kernels, compiled by this machine's nvcc and loaded from a folder."""
    model, images = bundle.demos[0], os.path.join(run.scratch, "images")
    if find("nvcc") is None:
        return run.skip("correct", "rebuild", "nvcc is not here")
    env = {"PATH": os.path.dirname(find("nvcc")) + os.pathsep + os.environ.get("PATH", "")}
    built = run.step("correct", "rebuild", ["/bin/sh", os.path.join(bundle.folder, "sources", model["name"], "build.sh"), images], 60, need=10, env=env, type=model["type"])
    if built["status"] == "ok":
        run.step("correct", "rebuilt kernels", bundle.generate(model, "cuda"), 30, lambda said, err: {"loaded": next(line for line in err.splitlines() if images in line)},
                 env={"IFLOWC_CUDA_IMAGES": images}, type=model["type"])


# --- ncu ----------------------------------------------------------------------------------------------------------


def ncu(run, bundle):
    """What limits each kernel: decoding at batch 1 of each type, then larger batches and prefill of the first."""
    if find("ncu") is None:
        return run.skip("ncu", "ncu", "ncu is not here")
    there = [m for m in bundle.shapes if os.path.exists(bundle.binary(m) + ".weights")]
    if not there:
        return run.skip("ncu", "ncu", "no shape has weights")
    last, prompt = bundle.sizes["batches"][-1], bundle.sizes["prompt"]
    calls = [(m, 0, 2, 1) for m in there] + [(there[0], 0, 2, last), (there[0], prompt, 0, 1)]
    for model, prompt, generate, batch in calls:
        argv = ["ncu", "--csv", "--page", "raw", "--clock-control", "none", "--launch-skip", 24, "--launch-count", 24]
        for section in SECTIONS:
            argv += ["--section", section]
        argv += [bundle.binary(model), "bench", "--device", "cuda", "--prompt", prompt, "--gen", generate, "--batch", batch, "--reps", 1]
        r = run.step("ncu", "ncu", argv, 45, kernels, need=15, env={"IFLOWC_CUDA_GRAPHS": "0"}, type=model["type"], batch=batch, prompt=prompt)
        if r["status"] == "denied":
            return


def kernels(said, err):
    """Means of ncu's columns for each kernel."""
    if "ERR_NVGPUCTRPERM" in said + err:
        return {"status": "denied", "error": "ERR_NVGPUCTRPERM: this user may not read the GPU's counters"}
    lines = [line for line in said.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    units, out = rows[0], {}
    for row in rows[1:]:
        one = out.setdefault(row["Kernel Name"].split("(")[0], {"launches": 0, "stalls": {}})
        one["launches"] += 1
        for column, value in row.items():
            number = numeric(value)
            stall = STALL.search(column)
            if number is None:
                continue
            if stall:
                one["stalls"][stall.group(1)] = one["stalls"].get(stall.group(1), 0) + number
            for key, pattern in COLUMNS.items():
                if re.search(pattern, column):
                    one[key] = one.get(key, 0) + number * (MICROSECONDS.get(units[column], 1) if key == "us" else 1)
    for name, one in out.items():
        for key in set(one) - {"launches", "stalls"}:
            one[key] = round(one[key] / one["launches"], 3)
        top = sorted(one["stalls"].items(), key=lambda s: -s[1])[:3]
        one["stalls"] = {k: round(v / one["launches"], 3) for k, v in top}
    return {"kernels": out}


def numeric(value):
    try:
        return float(value.replace(",", ""))
    except (ValueError, AttributeError):
        return None


# --- sanitizer ----------------------------------------------------------------------------------------------------


def sanitizer(run, bundle):
    if find("compute-sanitizer") is None:
        return run.skip("sanitizer", "compute-sanitizer", "compute-sanitizer is not here")
    errors = lambda said, err: {"errors": int(re.search(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", said + err).group(0).split()[2])}
    for model in bundle.demos:
        for tool in ("memcheck", "racecheck", "synccheck"):
            argv = ["compute-sanitizer", "--tool", tool, "--error-exitcode", 9, bundle.binary(model), "generate", "-p", bundle.prompt, "-n", 2, "--temp", "0", "--device", "cuda"]
            run.step("sanitizer", tool, argv, 40, errors, need=5, env={"IFLOWC_CUDA_GRAPHS": "0"}, type=model["type"])
