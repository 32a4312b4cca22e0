"""The checks, in order."""

import itertools, os, pathlib, re, shutil, threading

from . import fuzz, pairs
from .work import ROOT, Check, Outcome, command, go_tests, script

TYPES = ("f32 f16 bf16 q8_b32 q8_b64 q8_b32t2 q6_b64 q5_b64 q5_b32 q4_b32 q4_b64 q3h_b64 q3_b32 q2_b32 "
         "q6t_b32 q5t_b32 q4t_b32 q3t_b32 q2t_b32 q6_b16t2 q4_b16t2 q2_b16").split()
SHAPES = "smollm2-135m-instruct llama2-7b mistral-7b m2m100-418m roberta-base mixtral-8x7b-instruct".split()
FORMS = "f32 f16 bf16 q8_b64 q8_b32t2 q6_b64 q5_b32 q4_b64 q3h_b64 q2_b32 q4t_b32 q6_b16t2".split()  # one type of each way to store weights
GATED = {"llama2-7b": TYPES, "mixtral-8x7b-instruct": FORMS}  # a dense model and a mixture have all kernels that depend on the type
GATED_ELSE = "f16 q8_b64 q4_b64".split()
STREAMED = "llama2-7b llama3-8b-instruct qwen3-8b mixtral-8x7b-instruct deepseek-v3".split()
SEEDS = 3  # of random modules and graphs; other nights have others
LETTERS = "a b c d e f g h-l m n-o p q r-s ^a-s".split()  # with which the names of families begin; the last are all others
ORDERS = [("fwd", "lazy"), ("rev", "lazy"), ("rand:7", "eager")]
COMPILER = "codegen/compiler"
MODULE = "github.com/iflowc/iflowc"

# Packages whose tests take minutes: each function is a check, so that machines can share them and a run can continue after any.
DIVIDED = {COMPILER, "cmd/iflowc", "templates", "spec", "spec/tokenizerfile", "runtime/text/grammar", "runtime/engine", "runtime/engine/scheduler",
           "runtime/http/server", "runtime/device/ranks", "passes", "codegen", "codegen/pack", "ir/irtest", "ir/ops", "ir/tensor", "tools/simulate"}

# Functions that other checks run, by package.
APART = {
    COMPILER: "TestCUDAGates TestCUDATable TestPTX TestEmulatedTypes TestEmulatedFamilies TestOddSizes TestRandomOps TestEmulatedOps TestPTXOps".split(),
    "cmd/iflowc": ["TestDocs"],  # stage docs
}
WITHOUT = {"tools/hosts"}  # stage hosts of .ci/run builds what these need

# Stages of .ci/run that run more with IFLOWC_CHECK_ALL=1, and scripts of which .ci/run runs a part.
STAGES = "race neon guides partition models gguf llama2c site".split()
# These measure. Attacks on the demo model, whose requests take milliseconds, would measure the attacker's own use of the cores.
ALONE = {"docs": [".ci/run", "docs"], "masks": ["tools/check/masks/run"], "attack": ["script/attack", "--smollm2", "--seconds", "4"]}


class Plan:
    """What there is to run."""

    def __init__(self, models, scratch, jobs, fuzz_time):
        fuzz.seconds(fuzz_time)  # is one
        self.fuzz_time = fuzz_time
        self.models, self.scratch, self.jobs = models, scratch, jobs
        self.seed = int(os.environ.get("IFLOWC_TEST_SEED") or 1)
        self.pairs = pairs.Pairs(models, scratch)
        self.no_nvcc = "" if os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or shutil.which("nvcc") else "no nvcc"
        self.built, self.building = set(), threading.Lock()
        self.at_once = str(max(1, (os.cpu_count() or 1) // jobs))

    def binary(self, package):
        """The tests of a package, built when they are first needed."""
        to = self.scratch / (package.replace("/", "-") + ".test")
        with self.building:
            if package not in self.built:
                command(["go", "test", "-c", "-o", to, "./" + package])
                self.built.add(package)
        return to

    def go(self, run, *flags, order=None, seed=None, package=COMPILER):
        env = {**os.environ, "IFLOWC_TEST_ALL": "1"}
        if package == COMPILER:
            env.update(EMU_GUARD="1", IFLOWC_TEST_SEED=str(seed or self.seed))
        if order:
            env["EMU_ORDER"], env["EMU_CPASYNC"] = order
        words = ["-test.v=test2json", "-test.run", run, "-test.parallel", self.at_once, "-test.timeout", "60m", *flags]
        return lambda: go_tests(["go", "tool", "test2json", self.binary(package), *words], ROOT / package, env, "/" in run)

    def tests(self):
        """All cases of the Go tests."""
        every = {**os.environ, "IFLOWC_TEST_ALL": "1"}
        form = "{{.ImportPath}}\t{{range .TestGoFiles}}{{.}} {{end}}{{range .XTestGoFiles}}{{.}} {{end}}"
        for line in command(["go", "list", "-f", form, "./..."]).splitlines():
            package, _, files = line.partition("\t")
            package = package.removeprefix(MODULE).removeprefix("/")
            if not files.strip() or package in WITHOUT:
                continue
            if package not in DIVIDED:
                words = ["go", "test", "-json", "-count=1", "-p", "1", "-timeout", "60m", "./" + package]
                yield Check(f"tests ./{package}", "tests", lambda words=words: go_tests(words, env=every))
                continue
            text = "\n".join((ROOT / package / f).read_text() for f in files.split())
            for t in re.findall(r"^func (Test\w*)\(\w+ \*testing\.T\)", text, re.M):
                if t not in APART.get(package, []):
                    yield Check(f"tests ./{package} {t}", "tests", self.go(f"^{t}$", package=package))
            if re.search(r"^func Fuzz|^\s*// (Unordered output|Output):", text, re.M):
                yield Check(f"tests ./{package}, examples and seeds", "tests", self.go("^(Example|Fuzz)", package=package))

    def machine(self):
        """What nvcc makes of the kernels."""
        for m in SHAPES:
            for q in GATED.get(m, GATED_ELSE):
                yield f"gates {m} {q}", "gates", self.go("^TestCUDAGates$", "-gates", f"{m}/{q}")
        yield "gates recurrent", "gates", self.go("^TestCUDAGates$", "-gates", "recurrent")
        for m, q in itertools.product(STREAMED, ["q4_b64", "q8_b64", "f16"]):
            yield f"bytes in flight {m} {q}", "bytes in flight", self.go("^TestCUDATable$", "-table", f"{m}/{q}")
        for q in FORMS:
            yield f"ptx {q}", "ptx", self.go(f"^TestPTX$/^{q}")
        yield "ptx random graphs", "ptx", self.go("^TestPTXOps$")

    def emulated(self):
        """The CUDA target under emulation, and random graphs for both targets."""
        families = sorted([p.parent.name for p in ROOT.glob("spec/testdata/families/*/expected.json")] + [p.stem for p in ROOT.glob("spec/testdata/variants/*.yaml")])
        for letters in LETTERS:
            yield f"sizes {letters}", "sizes", self.go(f"^TestOddSizes$/^[{letters}]")
        order = lambda i: ORDERS[(self.seed + i) % len(ORDERS)]  # another seed gives each its next one
        yield f"types {order(0)}", "types", self.go("^TestEmulatedTypes$", order=order(0))
        for i, f in enumerate(families):
            yield f"family {f} {order(i)}", "family", self.go(f"^TestEmulatedFamilies$/^{re.escape(f)}$", order=order(i))
        for seed in range(self.seed + 1, self.seed + SEEDS):  # the tests above have the first
            yield f"random seed {seed}", "random", self.go("^TestEmulated(Matmuls|Modules)$", seed=seed, order=order(seed))
        for seed in range(self.seed, self.seed + SEEDS):  # 50 graphs each
            yield f"random graphs seed {seed}", "random", self.go("^TestRandomOps$", seed=seed)
            yield f"random graphs seed {seed}, emulated", "random", self.go("^TestEmulatedOps$", seed=seed, order=order(seed))

    def fuzzed(self):
        """Every fuzz target, on one core each."""
        for package, target in fuzz.targets():
            yield Check(f"fuzz {self.fuzz_time} ./{package} {target}", "fuzz", lambda package=package, target=target: fuzz.run(package, target, self.fuzz_time))

    def all(self):
        yield from self.tests()
        yield from self.fuzzed()
        yield Check("schemas", "schemas", lambda: script(["tools/check/schemas/run", "4000"]))
        for name, kind, f in self.machine():
            yield Check(name, kind, f, self.no_nvcc)
        for name, kind, f in self.emulated():
            yield Check(name, kind, f)
        full = {**os.environ, "IFLOWC_CHECK_ALL": "1"}
        for s in STAGES:
            yield Check(f"stage {s}", "stages", lambda s=s: script([".ci/run", s], full))
        for name in "agents", "clients":
            yield Check(f"{name}, busy", "frameworks", lambda name=name: script([f"tools/check/{name}/run", "--busy"]), "" if shutil.which("npm") else "no npm")
        yield Check("GPU bundle, with faults", "stages", lambda: script(["tools/check/gpubundle/run", "--faults"]))
        yield Check("frameworks", "frameworks", lambda: script(["tools/check/clients/frameworks/run"]), "" if shutil.which("npm") else "no npm")
        yield from self.folders()
        for name, words in ALONE.items():
            yield Check(f"stage {name}", "stages", lambda words=words: script(words, full), alone=True)
        yield Check("stage soak", "stages", self.soak, alone=True)
        yield Check("endings", "stages", lambda: script(["script/check-endings", "--smollm2"]), alone=True)

    def soak(self):
        folder, to = pathlib.Path(command(["script/fetch-smollm2"]).splitlines()[-1]).parent, self.scratch / "soak"
        command(["go", "run", "./cmd/iflowc", "compile", "models/smollm2-135m-instruct.yaml", "--model-dir", folder, "--quant", "q4_b64", "--calibrate", "none", "-o", to])
        return script(["script/soak", to, "--seconds", "120", "--seed", self.seed])

    def folders(self):
        """Models with known outputs, and pairs of a CPU's and an emulated GPU's results."""
        names = [d.name for d in sorted(self.models.iterdir()) if (d / "expected.json").exists()] if self.models.is_dir() else []
        if not names:
            yield Check("known outputs", "known outputs", why="no folders of --models")
        several = pairs.DEVICES[1:]
        one = lambda words: lambda: (command(words), Outcome(passed=1))[1]
        for i, n in enumerate(names):
            yield Check(f"known outputs {n}", "known outputs", one(["python3", self.models.parent / "check.py", "--models", self.models, "--only", f"^{re.escape(n)}$", "--extra=--target cuda-emu"]))
            d = several[(self.seed + i) % len(several)]
            words = ["script/check-partition", "--models", self.models, "--devices", d, "--only", f"^{re.escape(n)}$", "--extra=--target cuda-emu"]
            yield Check(f"known outputs {n} on {d}", "known outputs", one(words))
        # The first model in every type; of the others each third type, on devices in turn.
        rows = [(n, q, pairs.DEVICES[(self.seed + i + k) % len(pairs.DEVICES)])
                for i, n in enumerate(self.pairs.names()) for k, q in enumerate(TYPES) if i == 0 or (i + k + self.seed) % 3 == 0]
        for n, q, d in rows:
            yield Check(f"{n} {q} on {d or 'one GPU'}", "pairs", lambda n=n, q=q, d=d: self.pairs.run(n, q, "", d))

    def random_pairs(self, rng):
        for n, q, g, d in self.pairs.rows(rng, TYPES, not self.no_nvcc):
            yield Check(f"{n} {q} {g or 'no nvcc'} on {d or 'one GPU'}", "pairs", lambda row=(n, q, g, d): self.pairs.run(*row))
