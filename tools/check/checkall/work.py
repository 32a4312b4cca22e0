"""Runs checks: commands, processes of Go tests with their cases counted, and several checks at a time."""

import collections, ctypes, dataclasses, json, os, pathlib, re, signal, subprocess, sys, threading, time, typing

ROOT = pathlib.Path(__file__).resolve().parents[3]
LIMIT = 3 * 3600  # seconds of one command

# What a test says that was skipped because of a missing tool; any other reason to skip all cases is an error.
TOOL = re.compile(r"\b(no|needs|neither) .*\b(C compiler|compiler|gcc|g\+\+|mpirun\S*|setsid|bash|sshd|shell|libnccl\S*|locks|links)\b|not installed|is missing|is needed"
                  r"|not found|on this machine|no nvcc|nvcc is|nvcc was|no conformance|^needs \S+$|\bas root\b")


class Failed(Exception):
    """What a failed check prints."""


@dataclasses.dataclass
class Outcome:
    """The result of one check. verdict is passed, failed, refused (a model that cannot be split) or not run."""
    verdict: str = "passed"
    why: str = ""
    passed: int = 0  # cases
    skipped: int = 0
    failed: int = 0
    seconds: float = 0
    commit: str = ""  # that it ran at
    note: str = ""  # more to say of what passed


@dataclasses.dataclass
class Check:
    name: str
    kind: str
    run: typing.Optional[typing.Callable[[], Outcome]] = None
    why: str = ""  # why it cannot run here
    alone: bool = False  # it measures, or uses all cores


class Processes:
    """The processes that run now, each with a process group of its own, so that an interruption ends them all."""

    def __init__(self):
        self.lock, self.now, self.stopped = threading.Lock(), set(), False

    def start(self, words, folder, env):
        with self.lock:
            if self.stopped:
                raise Failed("interrupted")
            p = subprocess.Popen([str(w) for w in words], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, errors="replace", start_new_session=True, preexec_fn=die_with_parent)
            self.now.add(p)
            return p

    def ended(self, p):
        with self.lock:
            self.now.discard(p)

    def stop(self):
        with self.lock:
            self.stopped = True
            for p in self.now:
                end_group(p)


def end_group(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def load_libc():
    try:
        return ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    except (OSError, AttributeError):
        return None


PRCTL = load_libc()


def die_with_parent():
    """Lets a process end with this one, also if this one is killed."""
    if PRCTL:
        PRCTL(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


PROCESSES = Processes()


def lines_of(words, folder=ROOT, env=None, limit=LIMIT):
    """Yields the lines of a command; the generator's value is the exit status."""
    p = PROCESSES.start(words, folder, env or os.environ)
    timer = threading.Timer(limit, end_group, [p])
    timer.start()
    try:
        yield from p.stdout
        return p.wait()
    finally:
        late = not timer.is_alive()
        timer.cancel()
        end_group(p)  # and what it left running
        p.wait()
        PROCESSES.ended(p)
        if late:
            raise Failed(f"{' '.join(map(str, words))}: ended after {limit} s")


def command(words, folder=ROOT, env=None):
    """Gives the output of a command, which must succeed."""
    out, lines = [], lines_of(words, folder, env)
    while True:
        try:
            out.append(next(lines))
        except StopIteration as end:
            if end.value:
                raise Failed(f"{' '.join(map(str, words))}: exit {end.value}\n{''.join(out)[-20000:]}")
            return "".join(out)


def script(words, env=None):
    """Runs a script that says `not run: why` of what it leaves out; if that is all it says, it has not run."""
    text = command(words, env=env)
    left = [line.partition("not run: ")[2].strip() for line in text.splitlines() if "not run: " in line]
    stage = re.search(r"^(\d+) passed, 0 failed, ", text, re.M)  # of .ci/run
    nothing = stage and stage[1] == "0" or not [line for line in text.splitlines() if line.strip() and "not run: " not in line]
    if nothing and not left:
        raise Failed(f"{' '.join(map(str, words))}: it ran nothing\n{text[-1000:]}")
    return Outcome("not run" if nothing else "passed", "; ".join(left)[:300], passed=0 if nothing else 1)


class Cases:
    """Counts what Go tests say, as `go test -json` or test2json writes it: cases are tests without subtests."""

    def __init__(self):
        self.said, self.result, self.text = collections.defaultdict(collections.deque), {}, collections.deque(maxlen=60)

    def read(self, line):
        try:
            event = json.loads(line)
        except ValueError:
            self.text.append(line)
            return
        test = event.get("Test")
        if event.get("Action") in ("output", "build-output"):
            to = self.said[test] if test else self.text
            to.append(event["Output"])
            if len(to) > 60:
                to.popleft()
        elif test and event.get("Action") in ("pass", "skip", "fail"):
            self.result[test] = event["Action"]
            if event["Action"] == "pass":
                self.said.pop(test, None)

    def of(self, action):
        parents = {n.rpartition("/")[0] for n in self.result}
        while grand := {n.rpartition("/")[0] for n in parents} - parents:
            parents |= grand
        return [n for n, a in self.result.items() if a == action and n not in parents]

    def reasons(self):
        """Why tests were skipped."""
        out = []
        for n in self.of("skip"):
            said = [m[1].strip() for m in (re.match(r"\s*\S+\.go:\d+: (.*)", s) for s in self.said[n]) if m]
            out.append(said[-1] if said else "no reason")
        return list(dict.fromkeys(out))

    def outcome(self, words, status, subtests):
        passed, skipped, failed = (self.of(a) for a in ("pass", "skip", "fail"))
        if status or failed:
            text = "".join("".join(self.said[n]) for n in list(self.said) if self.result.get(n) != "skip") + "".join(self.text)
            raise Failed(f"{' '.join(map(str, words))}: exit {status}, {len(failed)} of {len(passed + skipped + failed)} cases failed\n{text[-3000:]}")
        if not passed and not skipped or subtests and not any("/" in n for n in passed + skipped):
            raise Failed(f"{' '.join(map(str, words))}: no tests to run")
        why = self.reasons()
        if not passed and not all(TOOL.search(w) for w in why):
            raise Failed(f"{' '.join(map(str, words))}: every case was skipped: {'; '.join(why)[:300]}")
        return Outcome("passed" if passed else "not run", "" if passed else "; ".join(why)[:300], len(passed), len(skipped))


def go_tests(words, folder=ROOT, env=None, subtests=False):
    """Runs a command that writes events of Go tests; at least one case, or one subtest, must run."""
    cases, lines = Cases(), lines_of(words, folder, env)
    while True:
        try:
            cases.read(next(lines))
        except StopIteration as end:
            return cases.outcome(words, end.value, subtests)


class Crew:
    """Runs checks, `jobs` at a time, and hands each result over as it comes."""

    def __init__(self, jobs, done):
        self.jobs, self.done = jobs, done
        self.changed, self.running, self.stop = threading.Condition(), 0, False

    def run(self, checks, until):
        """Starts checks until the time is up."""
        threads = []
        try:
            for c in checks:
                self.wait(1 if c.alone else self.jobs)
                if time.time() > until:
                    break
                with self.changed:
                    self.running += 1
                threads.append(threading.Thread(target=self.one, args=(c,), daemon=True))
                threads[-1].start()
                if c.alone:
                    self.wait(1)
            self.wait(1)
        except BaseException:
            PROCESSES.stop()
            raise

    def wait(self, most):
        with self.changed:
            while self.running >= most:
                self.changed.wait(1)

    def one(self, c):
        begun, text = time.time(), ""
        try:
            out = Outcome("not run", c.why) if c.why else c.run()
        except Failed as e:
            out, text = Outcome("failed"), str(e)
        except Exception as e:  # a broken check is a failed one
            out, text = Outcome("failed"), f"{type(e).__name__}: {e}"
        out.seconds = time.time() - begun
        with self.changed:
            if not PROCESSES.stopped:
                self.done(c, out, text)
            self.running -= 1
            self.changed.notify_all()
