"""Holds the grammars of runtime/text/grammar to the official JSON-Schema-Test-Suite for draft 2020-12.

    suite.py WALK FOLDER     WALK is the built program of this folder, FOLDER the suite's tests/draft2020-12

No invalid instance may match, in any order of its members, and every text that ended must be valid for jsonschema. A
valid instance should match in some order of its members; the share is printed by keyword. The exit code is 1 where
anything was wrong, or where too few schemas were accepted.
"""

import collections
import json
import pathlib
import sys

import check

# Schemas without references to other documents that must be accepted, and valid instances of accepted schemas that
# must match: the shares that were reached when this was written, less one percent.
LEAST_ACCEPTED, LEAST_MATCHED = 0.98, 0.92


def cases(folder):
    for file in sorted(folder.rglob("*.json")):
        for case in json.loads(file.read_text()):
            yield str(file.relative_to(folder).with_suffix("")), case


def task_of(case):
    spans, texts = [], []
    for test in case["tests"]:
        start = len(texts)
        texts += [json.dumps(o, ensure_ascii=False, separators=(",", ":")) for o in check.orders(check.whole(test["data"]))]
        spans.append((start, len(texts)))
    return {"schema": case["schema"], "seed": 1, "styles": check.STYLES, "tokens": 160, "texts": texts}, spans


class Report:
    def __init__(self):
        self.rows = collections.defaultdict(collections.Counter)
        self.wrong, self.refused = [], []

    def examine(self, name, case, spans, result):
        row, schema = self.rows[name], case["schema"]
        row["schemas"] += 1
        if "refused" in result:
            empty = "matches no text" in result["refused"]
            if empty and not any(t["valid"] for t in case["tests"]):
                row["accepted"] += 1  # it has no valid value
                return
            row["elsewhere" if "is not in the schema" in result["refused"] else "refused"] += 1
            self.refused.append((name, case["description"], result["refused"][:160]))
            if empty:
                self.wrong.append((name, case["description"], "refused as empty, but has valid instances"))
            return
        row["accepted"] += 1
        for test, (start, end) in zip(case["tests"], spans):
            matched = any(result["matches"][start:end])
            row["valid" if test["valid"] else "invalid"] += 1
            row["matched"] += matched and test["valid"]
            if matched and not test["valid"]:
                self.wrong.append((name, case["description"], f"matches the invalid {json.dumps(test['data'])[:100]}: {test['description']}"))
        for t in result["texts"]:
            self.output(name, case, schema, t)

    def output(self, name, case, schema, t):
        if t.get("error"):
            self.wrong.append((name, case["description"], t["error"]))
        if not t["ended"]:
            return
        self.rows[name]["outputs"] += 1
        try:
            value = check.strict(t["text"], [])
            for formats in (True, False):
                errors = list(check.validator_of(schema, formats).iter_errors(value))
                if errors:
                    self.wrong.append((name, case["description"], f"{t['text'][:100]}: {errors[0].message[:100]}"))
        except (RecursionError, check.re.error, check.jsonschema.exceptions.SchemaError):
            self.rows[name]["not judged"] += 1  # patterns that only ECMA-262 knows
        except ValueError as e:
            self.wrong.append((name, case["description"], str(e)))

    def print(self):
        names = ["schemas", "accepted", "refused", "elsewhere", "valid", "matched", "invalid", "outputs", "not judged"]
        print(f"{'':38}" + "".join(f"{n:>11}" for n in names))
        total = collections.Counter()
        for keyword, row in self.rows.items():
            print(f"{keyword:38}" + "".join(f"{row[n]:11}" for n in names))
            total += row
        print(f"{'all':38}" + "".join(f"{total[n]:11}" for n in names))
        for r in self.refused:
            print("  refused: " + " | ".join(r))
        here = total["schemas"] - total["elsewhere"]
        if total["accepted"] < LEAST_ACCEPTED * here or total["matched"] < LEAST_MATCHED * total["valid"]:
            self.wrong.append(("all", "", f"accepted {total['accepted']} of {here}, matched {total['matched']} of {total['valid']}"))
        for w in self.wrong[:30]:
            print("WRONG " + " | ".join(w))


def main():
    walk, folder = sys.argv[1:]
    all_cases = list(cases(pathlib.Path(folder)))
    tasks = [task_of(case) for _, case in all_cases]
    report = Report()
    for (name, case), (_, spans), result in zip(all_cases, tasks, check.run_walk(walk, [t for t, _ in tasks])):
        report.examine(name, case, spans, result)
    report.print()
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
