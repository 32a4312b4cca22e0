"""Finds the keys of config.json that change what transformers computes, and records the changes for TestKeys in spec.

    python keys.py [NAME…] [--jobs N]        # records; needs what spec/testdata/families/make.py needs
    python keys.py --list NAME               # prints what each change of a model does
    python keys.py --fit OUT [NAME…]         # writes folders for the changes that need other weights

For each tiny model of spec/testdata/families it changes one key of config.json at a time (see changes.py), loads the stored
weights with the changed configuration as transformers' users do, and compares the results with those of the unchanged one.
spec/testdata/keys.jsonl.gz has a line for each model and then a line for each change: with "want", a few of transformers'
results, if they change, and without it if they stay the same. A change is left out that transformers refuses, that needs other weights, or of which the
results are no numbers. For the second, --fit makes models with random weights, which TestFamilies compares:

    go test ./spec -run TestFamilies -args -families OUT

It must not print "differ by" or "bug".
"""

import argparse
import contextlib
import copy
import gzip
import json
import multiprocessing
import os
import pathlib
import re
import signal
import sys
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FAMILIES, RECORDS = ROOT / "spec/testdata/families", ROOT / "spec/testdata/keys.jsonl.gz"
sys.path.insert(0, str(FAMILIES))

import changes  # noqa: E402
import make  # noqa: E402
import newer_encoders  # noqa: E402
import torch  # noqa: E402
import transformers as tf  # noqa: E402

RESULTS = "classes", "embedding", "hidden", "logits", "pooled"
VALUES = 8  # recorded of a result
LIMIT = 20  # seconds of a change
REFUSED, UNFIT = "transformers refuses it", "it needs other weights"


class Model:
    """A tiny model, and what transformers computes from it."""

    def __init__(self, name):
        self.name, self.folder = name, FAMILIES / name
        table, self.outputs = next((t, o) for t, o in make.TABLES if name in t)
        cls, _, _, *self.rest = table[name]
        self.cls = newer_encoders.published(cls)
        self.file = json.loads((self.folder / "config.json").read_text())
        self.expected = json.loads((self.folder / "expected.json").read_text())
        self.missing = set()
        self.config = self.configure(self.file)
        with reading() as self.read:
            self.base, why = self.run(self.config)
        if why:
            raise SystemExit(f"{name}: {why}")
        if far(self.base, flat(self.expected), 1e-4):
            print(f"{name}: transformers computes something else from the folder than expected.json says", file=sys.stderr)

    def configure(self, file):
        return self.cls.config_class.from_dict(self.cls.config_class._decode_special_floats(json.loads(json.dumps(file))))

    @torch.no_grad()
    def run(self, config, double=False):
        """The results with a configuration, or why there are none."""
        signal.alarm(LIMIT)
        try:
            model, info = self.cls.from_pretrained(self.folder, config=config, dtype=torch.float32, output_loading_info=True)
            missing = set(info["missing_keys"])
            if not hasattr(self, "base"):
                self.missing, self.tables = missing, self.rounded(model, config)
            if missing - self.missing:
                return None, UNFIT
            self.restore(model, config)
            if "mask_token_id" in self.file:  # of the inputs; the model has its own
                model.config.mask_token_id = self.file["mask_token_id"]
            with in_float64(model.eval()) if double else contextlib.nullcontext(model.eval()) as m:
                results = {**self.outputs(m, *self.rest), **newer_encoders.embedding(self.name, m)}
        except (Exception, KeyboardInterrupt) as e:
            return None, UNFIT if "mismatched" in str(e) or "size mismatch" in str(e) else f"{REFUSED}: {type(e).__name__}: {str(e)[:200]}"
        finally:
            signal.alarm(0)
        if results["ids"] != self.expected["ids"]:
            return None, "it changes the inputs"
        values = flat(results)
        if not all(abs(v) < 1e9 for v in values):
            return None, "the results are no numbers"
        return values, ""

    def exact(self, config, values):
        """The values in float64, unless those in float32 are far from them: a tie may fall otherwise."""
        more, _ = self.run(config, double=True)
        return more if more and not far(values, more, 1e-3) else values

    def rounded(self, model, config):
        """The names of tables that transformers computes, and that the file has in f16."""
        tables = tensors(self.cls._from_config(config))
        return [k for k, x in tensors(model).items() if k in tables and x.shape == tables[k].shape and not x.equal(tables[k]) and torch.allclose(x.float(), tables[k].float(), rtol=1e-3, atol=1e-3)]

    def restore(self, model, config):
        """Replaces these tables by what transformers computes for a configuration."""
        if self.tables:
            computed, loaded = tensors(self.cls._from_config(config)), tensors(model)
            for name in self.tables:
                loaded[name].data.copy_(computed[name])

    def fit(self, config, label, out):
        """Writes a model with random weights that fit a configuration."""
        signal.alarm(LIMIT)
        try:
            with torch.device("meta"):
                if sum(p.numel() for p in self.cls._from_config(config).parameters()) > 1e6:
                    return  # a default of published sizes
            model = make.build(self.cls, lambda **_: config, {})
            expected = {"attention": config._attn_implementation, **self.outputs(model, *self.rest)}
            with in_float64(model) as exact:
                expected.update(self.outputs(exact, *self.rest))
            rope = getattr(config.get_text_config(), "rope_parameters", None) or {}
            make.save(re.sub(r"[^\w=,.-]", "_", f"{self.name},{label}")[:120], model, {**expected, "whole": rope.get("rope_type") in ("dynamic", "longrope")}, str(out))
        except (Exception, KeyboardInterrupt) as e:
            print(f"{self.name}, {label}: not written: {type(e).__name__}: {str(e)[:200]}", flush=True)
        finally:
            signal.alarm(0)


def tensors(model):
    return {**dict(model.named_buffers()), **dict(model.named_parameters())}


@contextlib.contextmanager
def reading():
    """The names of the configuration that are read inside."""
    cls, names = tf.configuration_utils.PreTrainedConfig, set()
    plain = cls.__getattribute__

    def get(config, key):
        names.add(plain(config, "attribute_map").get(key, key))
        return plain(config, key)

    cls.__getattribute__ = get
    try:
        yield names
    finally:
        cls.__getattribute__ = plain


@contextlib.contextmanager
def in_float64(model):
    """The model in float64, in which it also computes what transformers otherwise converts to float32."""
    exact = copy.deepcopy(model).double()
    exact.set_experts_implementation("eager")  # the others have no float64
    before = torch.float32, torch.Tensor.float
    torch.float32, torch.Tensor.float = torch.float64, torch.Tensor.double
    try:
        yield exact
    finally:
        torch.float32, torch.Tensor.float = before


def differing(a, b):
    """The names whose values differ in two configurations."""
    out = set()
    for key in a.keys() | b.keys():
        if isinstance(a.get(key), dict) and isinstance(b.get(key), dict) and "model_type" in a[key]:
            out |= differing(a[key], b[key])
        elif key not in a or key not in b or a[key] != b[key]:
            out.add(key)
    return out


def flat(results):
    return [v for name in RESULTS for row in results.get(name, []) for v in row]


def sample(values):
    return [values[i * (len(values) - 1) // (VALUES - 1)] for i in range(VALUES)]


def far(a, b, by=1e-5):
    """Whether values differ."""
    return len(a) != len(b) or max(abs(x - y) for x, y in zip(a, b)) > by * (1 + max(map(abs, a)))


def record(name, show=False):
    """The lines of a model: a head and its changes, and the same with rope's parameters in their other form."""
    m = Model(name)
    lines = changed_lines(m, m.file, [], show, lambda path: True)
    edits = changes.other_form(m.file, m.config)
    file = m.file
    for path, value in edits:
        file = changes.changed(file, path, value)
    if edits and m.run(m.configure(file))[0] == m.base:
        lines += changed_lines(m, file, edits, show, changes.of_rope)
    return name, lines


def line_of(path, value):
    return {"key": ".".join(path), **({} if value is changes.REMOVED else {"value": value})}


def changed_lines(m, file, edits, show, wanted):
    head = {"model": m.name, "edits": [line_of(*e) for e in edits], "tried": 0, "refused": 0, "unfit": 0}
    usual, said, lines = m.config.to_dict(), {}, [head]
    for path, value in changes.changes(m.cls, file, m.configure(file)):
        if not wanted(path):
            continue
        head["tried"] += 1
        try:
            config = m.configure(changes.changed(file, path, value))
            says = config.to_dict()
            text = json.dumps(says, sort_keys=True, default=str)
            if text not in said:
                said[text] = m.run(config) if differing(says, usual) & m.read else (m.base, "")
            values, why = said[text]
        except Exception as e:
            values, why = None, f"{REFUSED}: {type(e).__name__}: {str(e)[:200]}"
        if show:
            print(changes.label(path, value)[:100], "→", why or ("changes" if far(values, m.base) else "nothing"), flush=True)
        if values is None:
            head["refused" if why.startswith(REFUSED) else "unfit"] += 1
            continue
        line = line_of(path, value)
        if far(sample(values), sample(m.base)):
            line["want"] = [round(v, 5) for v in sample(m.exact(config, values))]
        lines.append(line)
    return lines


def fit(name, out):
    """Writes the models of the changes that need other weights."""
    m = Model(name)
    for path, value in changes.changes(m.cls, m.file, m.config):
        try:
            config = m.configure(changes.changed(m.file, path, value))
        except Exception:  # transformers refuses it
            continue
        if m.run(config)[1] == UNFIT:
            m.fit(config, changes.label(path, value), out)


def read():
    """The recorded lines of each model."""
    records = {}
    if RECORDS.exists():
        for line in gzip.decompress(RECORDS.read_bytes()).splitlines():
            line = json.loads(line)
            if "model" in line:
                here = records.setdefault(line["model"], [])
            here.append(line)
    return records


def write(records):
    """Writes the models that there are."""
    lines = [json.dumps(line, separators=(",", ":")) + "\n" for name in sorted(records) for line in records[name]]
    RECORDS.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def quiet():
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, signal.default_int_handler)  # becomes a KeyboardInterrupt
    tf.logging.set_verbosity(tf.logging.CRITICAL)
    tf.logging.disable_progress_bar()
    warnings.simplefilter("ignore")


def worker(name):
    quiet()
    try:
        return record(name)
    except (SystemExit, Exception) as e:
        return name, str(e)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("names", nargs="*")
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--fit", type=pathlib.Path)
    a = ap.parse_args()
    names = a.names or [name for table, _ in make.TABLES for name, what in table.items() if hasattr(tf, what[0])]
    if a.list or a.fit:
        quiet()
        for name in names:
            fit(name, a.fit) if a.fit else record(name, True)
        return 0
    records, failed = read() if a.names else {}, 0
    with multiprocessing.get_context("spawn").Pool(a.jobs) as pool:
        for name, lines in pool.imap_unordered(worker, names):
            if isinstance(lines, str):
                print(f"{name}: {lines}", flush=True)
                failed += 1
                continue
            records[name] = lines
            heads = [x for x in lines if "model" in x]
            said = {what: sum(h[what] for h in heads) for what in ("tried", "refused", "unfit")}
            print(f"{name:28s} {said['tried']} changes, {said['refused']} refused, {said['unfit']} need other weights, {sum('want' in x for x in lines)} of {len(lines) - len(heads)} change the results", flush=True)
            write(records)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
