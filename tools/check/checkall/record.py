"""The page docs/benchmarks/check-all.md, and estimates from it."""

import collections, datetime, os, platform, re

from . import state
from .work import ROOT, command

PAGE = "docs/benchmarks/check-all.md"


def rows(every, results):
    """The counts of each kind of check: available, by verdict, cases, seconds."""
    out = {}
    for c in every:
        row = out.setdefault(c.kind, collections.Counter())
        row["available"] += 1
        if r := results.get(c.name):
            row[r.verdict] += 1
            row["cases"] += r.passed
            row["cases skipped"] += r.skipped
            row["seconds"] += r.seconds
    return out


def reasons(every, results):
    """Why checks did not run, or left something out: (kind, reason) and how many."""
    out = collections.Counter()
    for c in every:
        r = results.get(c.name)
        if r and r.why and r.verdict != "refused":
            out[c.kind, r.why] += 1
        elif r and r.skipped and not r.why:
            out[c.kind, "some cases were skipped"] += 1
    return out


def write(every, results, notes):
    first = lambda *words: command(words).splitlines()[0]
    table, columns = rows(every, results), ["available", "passed", "refused", "not run", "failed", "cases", "cases skipped"]
    total = sum(table.values(), collections.Counter())
    line = lambda name, r: f"| {name} | " + " | ".join(f"{r[c]:,}" for c in columns) + f" | {r['seconds']:.0f} |"
    head = state.git("rev-parse", "--short", "HEAD")
    older = collections.Counter(r.commit for c in every if (r := results.get(c.name)) and r.commit != head)
    left = total["available"] - sum(total[v] for v in ("passed", "refused", "not run", "failed"))
    lines = [
        "# Results of script/check-all", "",
        "This page has the results of `script/check-all --record`, with those of the interrupted runs that it continued.", "",
        f"Commit {head}, {datetime.date.today()}: {platform.machine()}, {os.cpu_count()} CPUs, "
        f"{first('go', 'version').split()[2]}, {first('cc', '--version')}.",
        *(f"Of these checks, {n:,} ran at {commit}, which differs only in Go tests or this page." for commit, n in older.items()), *notes, "",
        f"| checks | {' | '.join(columns)} | seconds |", "|---" * (len(columns) + 2) + "|",
        *(line(k, r) for k, r in table.items()), line("**all**", total), "",
        "A case is a Go test or subtest without subtests, or one run of another program. Refused: the compiler reports that the model "
        "cannot be split over these devices. Seconds are those of the checks one after another; several run at a time.",
    ]
    if left:
        lines += ["", f"**{left} of {total['available']} checks have no result:** the run did not come to them."]
    if why := reasons(every, results):
        lines += ["", "Not run, or in part:", "", *(f"- {kind}, {n} {'check' if n == 1 else 'checks'}: {text}" for (kind, text), n in why.items() if n)]
    lines += [f"\nFailed: `{c.name}`" for c in every if c.name in results and results[c.name].verdict == "failed"]
    (ROOT / PAGE).write_text("\n".join(lines) + "\n")


def seconds_per_check():
    """The mean seconds of each kind of check in the page, and the page's commit."""
    text = (ROOT / PAGE).read_text() if (ROOT / PAGE).exists() else ""
    commit, head, out = re.search(r"^Commit (\w+)", text, re.M), [], {}
    for line in text.splitlines():
        cells = [c.strip().replace(",", "") for c in line.strip("|").split("|")]
        if cells[0] == "checks":
            head = cells
        elif head and len(cells) == len(head) and cells[1].isdigit():
            ran = sum(int(c) for h, c in zip(head, cells) if h in ("passed", "refused", "failed"))
            if ran:
                out[cells[0]] = float(cells[-1]) / ran
    return out, commit[1] if commit else ""


def estimate(checks, jobs, known):
    """A sentence on how long checks will take: by their own last times, else by the page's mean of their kind."""
    mean, commit = seconds_per_check()
    guess = [known.get(c.name, mean.get(c.kind)) for c in checks if not c.why]
    have = [g for g in guess if g is not None]
    if not have:
        return f"{len(checks)} checks; no earlier run says how long they take"
    total = sum(have) / len(have) * len(guess) / jobs
    of = f"earlier runs{' and the record of ' + commit if commit else ''}"
    long = f"{total / 3600:.1f} h" if total > 5400 else f"{total / 60:.0f} min"
    return f"{len(checks)} checks, about {long} with {jobs} at a time, from {of} ({len(have)} of {len(guess)} are known)"
