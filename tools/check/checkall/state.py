"""Results of checks, kept under the user's cache so that an interrupted run continues."""

import dataclasses, hashlib, json, os, pathlib, shutil, time

from . import work


def git(*words):
    return work.command(["git", *words]).strip()


def changes(but=""):
    """The uncommitted files, without the one named."""
    return [line[3:] for line in work.command(["git", "status", "--porcelain"]).splitlines() if line[3:] != but]


def folder(record):
    """The folder for this commit and others that differ only in Go tests and the record. A changed tree has its own, by its contents."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "iflowc-check-all"
    tree = "\n".join(line for line in git("ls-tree", "-r", "HEAD").splitlines() if not line.endswith(("_test.go", "\t" + record)))
    name = hashlib.sha256(tree.encode()).hexdigest()[:12]
    if changed := changes(but=record):
        h = hashlib.sha256(git("diff", "HEAD").encode())
        for f in changed:
            path = work.ROOT / f
            h.update(f.encode() + (path.read_bytes() if path.is_file() else b""))
        name += "-changed-" + h.hexdigest()[:8]
    if seed := os.environ.get("IFLOWC_TEST_SEED"):
        name += "-seed-" + seed
    return cache / name


class State:
    """Results in a file of JSON lines, one written as soon as it is known. A line that was cut off is ignored."""

    def __init__(self, at, fresh=False):
        self.at, self.results, self.commit = at, {}, git("rev-parse", "--short", "HEAD")
        if fresh:
            shutil.rmtree(at, ignore_errors=True)
        at.mkdir(parents=True, exist_ok=True)
        self.file = at / "results.jsonl"
        text = self.file.read_text() if self.file.exists() else ""
        for line in text.splitlines():
            try:
                r = json.loads(line)
                name = r.pop("name")
                self.results[name] = work.Outcome(**r)
            except (ValueError, KeyError, TypeError):
                pass
        self.to = open(self.file, "a")
        if text and not text.endswith("\n"):
            self.to.write("\n")

    def add(self, name, out):
        out.commit = self.commit
        self.results[name] = out
        self.to.write(json.dumps({"name": name, **dataclasses.asdict(out)}) + "\n")
        self.to.flush()
        os.fsync(self.to.fileno())

    def done(self, name):
        """Reports whether a check needs no further run. One that lacked a tool is tried again."""
        return name in self.results and self.results[name].verdict in ("passed", "refused")


def times(cache):
    """The seconds of each check in the latest run that has it, of any commit."""
    out = {}
    for file in sorted(cache.glob("*/results.jsonl"), key=lambda f: f.stat().st_mtime):
        for line in file.read_text().splitlines():
            try:
                r = json.loads(line)
                out[r["name"]] = r["seconds"]
            except (ValueError, KeyError):
                pass
    return out


def forget(cache, days=30):
    """Removes the results of commits that nothing was added to for so long."""
    for f in cache.glob("*/results.jsonl"):
        if time.time() - f.stat().st_mtime > days * 86400:
            shutil.rmtree(f.parent, ignore_errors=True)
