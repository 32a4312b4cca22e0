"""Fuzz targets, each for a time of its own."""

import re

from .work import LIMIT, ROOT, Failed, Outcome, lines_of

SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds(time):
    """The seconds of a time as Go writes it: 30s, 10m, 1h."""
    parts = re.findall(r"(\d+)([hms])", time)
    if not parts or "".join(map("".join, parts)) != time:
        raise Failed(f"--fuzz-time {time}: expected a time such as 30s, 10m or 1h")
    return sum(int(n) * SECONDS[unit] for n, unit in parts)


def targets():
    """Yields the package and the name of every target."""
    for file in sorted(ROOT.rglob("*_test.go")):
        for name in re.findall(r"^func (Fuzz\w+)\(\w+ \*testing\.F\)", file.read_text(), re.M):
            yield file.parent.relative_to(ROOT).as_posix(), name


def run(package, target, time, folder=ROOT):
    """Fuzzes a target on one core. Go keeps the inputs that reach new code in its cache, from which the next run begins, and writes one
    that fails to testdata/fuzz of the package, where it is a case of `go test` from then on."""
    words = ["go", "test", "-run", "^$", "-fuzz", f"^{target}$", "-fuzztime", time, "-parallel", "1", "-fuzzminimizetime", "100x", f"./{package}"]
    text, executions, lines = [], 0, lines_of(words, folder, limit=LIMIT + seconds(time))
    while True:
        try:
            line = next(lines)
        except StopIteration as end:
            status = end.value
            break
        if progress := re.match(r"fuzz: elapsed: .* execs: (\d+)", line):
            executions = int(progress[1])
        else:
            text.append(line)
    said = "".join(text)
    # The time may end while Go shrinks an input that is no failure.
    if status and ("Failing input" in said or "context deadline exceeded" not in said):
        raise Failed(f"{' '.join(words)}: exit {status}\n{said[-20000:]}")
    if not executions:
        raise Failed(f"{' '.join(words)}: it executed nothing\n{said[-1000:]}")
    return Outcome(passed=1, note=f"{executions:,} executions")
