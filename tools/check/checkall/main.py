"""The command line of script/check-all."""

import argparse, os, pathlib, random, re, shutil, signal, sys, tempfile, time

from . import plan, record, state
from .work import PROCESSES, Crew, Failed


def arguments(text):
    ap = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--shard", default="1/1")
    ap.add_argument("--only", default="")
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--models", default="")
    ap.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    ap.add_argument("--fresh", action="store_true")
    ap.add_argument("--record", action="store_true")
    ap.add_argument("--budget", type=float, default=0)
    ap.add_argument("--pairs", type=float, default=0)
    ap.add_argument("--fuzz-time", default="30s")
    ap.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    return ap.parse_args()


def report(results, add):
    """Gives the function that prints one result and keeps it."""
    def done(check, out, text):
        add(check.name, out)
        results[check.name] = out
        verdict = "FAILED" if out.verdict == "failed" else out.verdict
        cases = f", {out.passed} cases" + (f", {out.skipped} skipped" if out.skipped else "") if out.passed + out.skipped > 1 else ""
        print(f"[{len(results)}] {check.name}: {verdict}{': ' + out.why if out.why else ''}{cases}{', ' + out.note if out.note else ''}, {out.seconds:.0f} s" + (f"\n{text}" if text else ""), flush=True)
    return done


def run(checks, jobs, add, until=float("inf")):
    """Runs checks and gives their results by name, and whether the run was interrupted."""
    results = {}
    def ended(*_):
        for s in (signal.SIGINT, signal.SIGTERM):  # once is enough
            signal.signal(s, signal.SIG_IGN)
        raise KeyboardInterrupt
    signal.signal(signal.SIGTERM, ended)
    signal.signal(signal.SIGINT, ended)
    try:
        Crew(jobs, report(results, add)).run(checks, until)
    except KeyboardInterrupt:
        return results, True
    return results, False


def nothing_ran(every, results):
    """The kinds of checks of which none has a result."""
    have = {c.kind for c in every if c.name in results}
    return sorted({c.kind for c in every} - have)


def summary(every, checks, results, interrupted, sampled):
    """Prints what came out. Returns the exit status."""
    count = lambda v: sum(r.verdict == v for r in results.values())
    failed = [c.name for c in every if c.name in results and results[c.name].verdict == "failed"]
    print(", ".join(f"{count(v)} {v}" for v in ("passed", "refused", "not run") if count(v) or v == "passed") + f", {len(failed)} failed; "
          f"{sum(r.passed for r in results.values())} cases" + "".join("\n  " + n for n in failed))
    if interrupted:
        print("interrupted: the same command continues")
        return 130
    empty = [] if sampled else nothing_ran(every, results)
    for kind in empty:
        print(f"ERROR: of the checks called {kind}, none ran")
    if not any(c.name in results for c in checks):
        print("ERROR: no check ran")
        return 1
    return 1 if failed or empty else 0


def work_on(a, scratch):
    models = pathlib.Path(a.models).resolve() if a.models else scratch / "none"
    plans = plan.Plan(models, scratch, a.jobs, a.fuzz_time)
    changed = state.changes(but=record.PAGE)
    if a.record and changed and not a.list:
        print(f"--record: the record names a commit, and these files differ from it: {', '.join(changed[:5])}")
        return 1
    notes, sampled = [], bool(a.budget or a.only or a.shard != "1/1")
    note = lambda text: (print(text), notes.append(text[0].upper() + text[1:] + "."))
    if not models.is_dir():
        note((f"no folders with known outputs at {a.models}" if a.models else "no --models DIR") + ": of the pairs, only those of the demo model")
    if a.pairs or a.budget:
        note(f"sampled with seed {a.seed}, within {a.pairs or a.budget:.0f} s")
    if a.pairs:
        checks = plans.random_pairs(random.Random(a.seed))
        if a.list:
            print("\n".join(c.name for c in checks))
            return 0
        results, interrupted = run(checks, a.jobs, lambda *_: None, time.time() + a.pairs)
        return summary([], [], results, interrupted, True) if not results or interrupted else int(any(r.verdict == "failed" for r in results.values()))
    every = list(plans.all())
    part, parts = map(int, a.shard.split("/"))
    checks = [c for i, c in enumerate(every) if i % parts == part - 1 and re.search(a.only, c.name)]
    if a.budget:
        random.Random(a.seed).shuffle(checks)
    if a.list:
        print("\n".join(c.name for c in checks))
        return 0
    at = state.folder(record.PAGE)
    known, kept = state.times(at.parent), state.State(at, a.fresh)
    state.forget(at.parent)
    todo = [c for c in checks if not kept.done(c.name)]
    if len(todo) < len(checks):
        print(f"{len(checks) - len(todo)} of {len(checks)} checks have passed already ({at}); --fresh begins anew")
    print(record.estimate(todo, a.jobs, known), flush=True)
    _, interrupted = run(todo, a.jobs, kept.add, time.time() + a.budget if a.budget else float("inf"))
    status = summary(every, checks, {c.name: kept.results[c.name] for c in every if c.name in kept.results}, interrupted, sampled)
    if a.record and not interrupted:
        if state.changes(but=record.PAGE):
            print("--record: not written, because files changed in the meantime")
            return 1
        record.write(every, kept.results, notes)
    return status


def main(text):
    a = arguments(text)
    for old in pathlib.Path(tempfile.gettempdir()).glob("check-all-*-*"):  # of runs that were killed
        pid = old.name.split("-")[2]
        if pid.isdigit() and not pathlib.Path("/proc", pid).exists() and pathlib.Path("/proc").exists():
            shutil.rmtree(old, ignore_errors=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix=f"check-all-{os.getpid()}-"))
    try:
        return work_on(a, scratch)
    except Failed as e:
        print(e)
        return 1
    finally:
        for s in (signal.SIGINT, signal.SIGTERM):
            signal.signal(s, signal.SIG_IGN)
        PROCESSES.stop()
        shutil.rmtree(scratch, ignore_errors=True)
