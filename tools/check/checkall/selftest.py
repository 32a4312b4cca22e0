"""Plants checks that fail, run nothing, or are interrupted, and holds script/check-all to what it says of them."""

import contextlib, io, os, pathlib, signal, subprocess, sys, tempfile, time, unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from checkall import fuzz, main, record, state, work  # noqa: E402

PLANTED = """
package planted
import ("os/exec"; "testing")
func TestPass(t *testing.T) { t.Run("a", func(*testing.T) {}); t.Run("b", func(*testing.T) {}) }
func TestFail(t *testing.T) { t.Error("planted") }
func TestSkip(t *testing.T) { t.Skip("-args -x runs it") }
func TestTool(t *testing.T) { _, err := exec.LookPath("no-such-tool"); t.Skip(err) }
"""


def planted(count, marks, slow):
    """Checks that note each run of theirs in a file; the one named slow takes a minute."""
    def one(name):
        with open(marks, "a") as f:
            f.write(name + "\n")
        if name == slow:
            work.command(["sleep", "60"])
        return work.Outcome(passed=1)
    return [work.Check(f"check {i}", "planted", lambda i=i: one(f"check {i}")) for i in range(count)]


def session(at, marks, slow=""):
    kept = state.State(pathlib.Path(at))
    checks = planted(6, marks, slow)
    todo = [c for c in checks if not kept.done(c.name)]
    _, interrupted = main.run(todo, 2, kept.add)
    return main.summary(checks, checks, kept.results, interrupted, False)


class SelfTest(unittest.TestCase):
    def quiet(self, f, *args):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            value = f(*args)
        return value, out.getvalue()

    def outcomes(self, checks):
        results = {}
        _, text = self.quiet(lambda: main.run(checks, 2, results.__setitem__))
        return results, text

    def test_go(self):
        with tempfile.TemporaryDirectory() as d:
            pathlib.Path(d, "go.mod").write_text("module planted\n")
            pathlib.Path(d, "planted_test.go").write_text(PLANTED)
            go = lambda run, **more: work.Check(run, "go", lambda: work.go_tests(["go", "test", "-json", "-run", run, "."], d, **more))
            results, text = self.outcomes([go("^TestPass$"), go("^TestFail$"), go("^TestSkip$"), go("^TestTool$"), go("^TestNone$"), go("^TestPass$/^c", subtests=True)])
        got = {n: (r.verdict, r.passed, r.skipped) for n, r in results.items()}
        self.assertEqual(got, {"^TestPass$": ("passed", 2, 0), "^TestFail$": ("failed", 0, 0), "^TestSkip$": ("failed", 0, 0),
                               "^TestTool$": ("not run", 0, 1), "^TestNone$": ("failed", 0, 0), "^TestPass$/^c": ("failed", 0, 0)}, text)
        for words in ("planted_test.go:5: planted", "every case was skipped: -args -x runs it", "no tests to run", "no-such-tool"):
            self.assertIn(words, text)

    def test_scripts(self):
        say = lambda name, words: work.Check(name, "script", lambda: work.script(["sh", "-c", words]))
        results, text = self.outcomes([say("good", "echo 3 checked"), say("bad", "echo why; exit 3"), say("silent", "true"), say("none", "echo '0 passed, 0 failed, 0 minutes'"),
                                       say("left", "echo not run: no npm"), work.Check("tool", "script", why="no nvcc")])
        self.assertEqual({n: r.verdict for n, r in results.items()},
                         {"good": "passed", "bad": "failed", "silent": "failed", "none": "failed", "left": "not run", "tool": "not run"}, text)
        self.assertEqual(results["left"].why + results["tool"].why, "no npmno nvcc")

    def test_kind_without_a_run(self):
        checks = [work.Check("a", "ran", lambda: work.Outcome()), work.Check("b", "left", lambda: work.Outcome())]
        results, _ = self.outcomes(checks[:1])
        status, text = self.quiet(main.summary, checks, checks, results, False, False)
        self.assertEqual(status, 1)
        self.assertIn("of the checks called left, none ran", text)
        self.assertEqual(self.quiet(main.summary, checks[:1], checks[:1], results, False, False)[0], 0)
        self.assertEqual(self.quiet(main.summary, checks, checks, {}, False, True)[0], 1)

    def interrupt(self, how):
        with tempfile.TemporaryDirectory() as d:
            at, marks = os.path.join(d, "state"), os.path.join(d, "marks")
            first = subprocess.Popen([sys.executable, "-B", __file__, "session", at, marks, "check 3"], stdout=subprocess.DEVNULL)
            for _ in range(300):
                time.sleep(0.1)
                if os.path.exists(marks) and "check 5" in pathlib.Path(marks).read_text():
                    break
            time.sleep(0.5)
            first.send_signal(how)
            code = first.wait(20)
            with open(os.path.join(at, "results.jsonl"), "a") as f:  # as a write that was cut off
                f.write('{"name": "check 3", "verd')
            self.assertEqual(self.quiet(session, at, marks)[0], 0)
            ran = pathlib.Path(marks).read_text().splitlines()
            self.assertEqual(sorted(ran), ["check 0", "check 1", "check 2", "check 3", "check 3", "check 4", "check 5"])
            kept = state.State(pathlib.Path(at))
            table = record.rows(planted(6, marks, ""), kept.results)["planted"]
            self.assertEqual((table["available"], table["passed"], table["cases"]), (6, 6, 6))
            self.assertEqual({r.commit for r in kept.results.values()}, {state.git("rev-parse", "--short", "HEAD")})
        return code

    def test_interrupted(self):
        self.assertEqual(self.interrupt(signal.SIGINT), 130)

    def test_killed(self):
        self.assertEqual(self.interrupt(signal.SIGKILL), -signal.SIGKILL)

    def test_fuzz(self):
        self.assertEqual([fuzz.seconds(t) for t in ("30s", "10m", "1h", "1h30m")], [30, 600, 3600, 5400])
        for bad in ("", "1", "1d", "h1", "1h "):
            self.assertRaises(work.Failed, fuzz.seconds, bad)
        self.assertIn(("spec/checkpoint", "FuzzTorch"), list(fuzz.targets()))

    def test_changed_names(self):
        self.assertEqual(record.rows([], {"gone": work.Outcome()}), {})


if __name__ == "__main__":
    if sys.argv[1:2] == ["session"]:
        sys.exit(session(*sys.argv[2:]))
    unittest.main()
