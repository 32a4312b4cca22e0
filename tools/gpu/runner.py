"""Runs steps, each in its own process group with its own timeout, and writes what they said as lines of JSON."""
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

KEPT = 2000  # characters of a failed step's last output
MAX_OUTPUT = 256 << 20  # bytes of a step's output; a profile has 1 MB


class Log:
    """One file of JSON lines for each stage. A line is one write, so a killed driver leaves complete lines."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.files, self.records, self.lock = folder, {}, [], threading.Lock()

    def write(self, stage, record):
        record = {"stage": stage, **record}
        with self.lock:
            self.records.append(record)
            try:
                if stage not in self.files:
                    path = os.path.join(self.folder, stage + ".jsonl")
                    self.files[stage] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
                os.write(self.files[stage], (json.dumps(record) + "\n").encode())
            except OSError as e:  # a full disk; the summary still comes out
                print("%s: %s" % (stage, e), file=sys.stderr)


class Runner:
    """Runs commands within a budget of seconds. Nothing that a command does ends the driver."""

    def __init__(self, log, budget, longest):
        self.log, self.start, self.longest = log, time.monotonic(), longest
        self.deadline = self.start + budget
        self.stage_deadline = self.deadline
        self.groups, self.stopped = set(), None
        self.scratch = tempfile.mkdtemp(prefix="gpu-bundle-")
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, self.stop)

    def stop(self, number, frame):
        """Ends the running steps. Those that follow are recorded as skipped."""
        self.stopped = self.stopped or number
        for group in list(self.groups):
            kill(group)

    def begin(self, seconds):
        """Starts a stage that may use so many seconds of what is left."""
        self.stage_deadline = min(self.deadline, time.monotonic() + seconds)

    def left(self):
        return self.stage_deadline - time.monotonic()

    def skip(self, stage, step, why, **more):
        self.log.write(stage, {"step": step, "status": "skipped", "error": why, **more})

    def step(self, stage, name, argv, timeout, parse=None, need=1, env=None, **more):
        """Runs a command and returns its record. parse turns its output into keys of the record. need is the least number
        of seconds that make sense; more are other keys of the record."""
        if self.stopped:
            self.skip(stage, name, "stopped by signal %d" % self.stopped, **more)
            return {"status": "skipped"}
        timeout = min(timeout, self.longest, self.left())
        if timeout < min(need, self.longest):
            self.skip(stage, name, "needs %d s, %d s are left" % (need, max(0, self.left())), **more)
            return {"status": "skipped"}
        begun = time.monotonic()
        record = {"step": name, **more}
        try:
            record.update(self.run(argv, timeout, parse, env))
        except Exception as e:  # whatever a step does, the next one runs
            record.update(status="failed", error="%s: %s" % (type(e).__name__, e))
        record["seconds"] = round(time.monotonic() - begun, 3)
        self.log.write(stage, record)
        return record

    def run(self, argv, timeout, parse, env):
        where = find(str(argv[0]))
        if where is None:
            return {"status": "missing", "error": "%s is not here" % argv[0]}
        with tempfile.TemporaryFile(dir=self.scratch) as out, tempfile.TemporaryFile(dir=self.scratch) as err:
            status, code = self.wait([where] + [str(a) for a in argv[1:]], timeout, env, out, err)
            said, complained = text(out), text(err)
        record = {"status": status}
        if status != "ok":
            record["error"] = (complained or said)[-KEPT:]
            record["exit"] = code
        if parse:  # also what a failed command said before
            try:
                record.update(parse(said, complained))
            except Exception as e:
                if status == "ok":
                    record.update(status="failed", error="unreadable output (%s): %s" % (e, said[-KEPT:]))
        return record

    def wait(self, argv, timeout, env, out, err):
        """Runs a process to its end, and then kills what is left of its group."""
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **(env or {})},
                             start_new_session=True, cwd=self.scratch)
        self.groups.add(p.pid)
        if self.stopped:
            kill(p.pid)
        until, status = time.monotonic() + timeout, None
        while p.poll() is None:
            if time.monotonic() > until:
                status = "timeout"
            elif max(os.fstat(out.fileno()).st_size, os.fstat(err.fileno()).st_size) > MAX_OUTPUT:
                status = "failed"
            if status:
                kill(p.pid)
                p.wait()
            time.sleep(0.01)
        kill(p.pid)
        self.groups.discard(p.pid)
        if self.stopped and p.returncode != 0:
            status = "stopped"
        return status or ("ok" if p.returncode == 0 else "killed" if p.returncode < 0 else "failed"), p.returncode

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)


def kill(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass  # it has ended


def text(f):
    f.seek(0)
    return f.read(MAX_OUTPUT).decode("utf-8", "replace")


def find(program):
    """The path of a program: as it is, on the path, or where CUDA's installers put it."""
    if os.sep in program:
        return program if os.access(program, os.X_OK) else None
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    places = [os.path.join(h, d) for h in homes if h for d in ("bin", "compute-sanitizer", "nsight-compute")]
    for root in ("/opt/nvidia/nsight-compute", "/usr/local/cuda/nsight-compute"):
        if os.path.isdir(root):
            places += [os.path.join(root, d) for d in sorted(os.listdir(root), reverse=True)]
    return shutil.which(program) or shutil.which(program, path=os.pathsep.join(places) or None)


@functools.lru_cache(maxsize=None)
def python():
    """The first interpreter that has PyTorch, else the one on the path."""
    here = [shutil.which("python3"), sys.executable, shutil.which("python"), "/opt/conda/bin/python", "/usr/bin/python3", "/usr/local/bin/python3"]
    for path in filter(None, here):
        try:
            probe = [path, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"]
            if subprocess.run(probe, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10).returncode == 0:
                return path
        except (OSError, subprocess.SubprocessError):
            pass
    return next(filter(None, here))
