"""Compares iflowc, llguidance and xgrammar on the official JSON-Schema-Test-Suite for draft 2020-12, and prints a table.

    engines.py WALK FOLDER     WALK is the built program of this folder, FOLDER the suite's tests/draft2020-12

All engines get the same instances, with the members of objects in several orders. A valid instance that matches in some
order is counted, and so is an invalid one that matches, which an exact engine never allows. An engine that refuses a
schema is not asked for its instances.
"""

import collections
import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "masks"))

import check
import compare
import suite

WORDS = [bytes([b]) for b in range(256)]
EOS = 256


class LLGuidance(compare.LLGuidance):
    def matches(self, schema, texts):
        schema = schema if isinstance(schema, dict) else {"allOf": [schema]}  # its options need an object
        grammar = compare.llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), defaults={"whitespace_flexible": False})
        matcher = compare.llguidance.LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.get_error():
            raise compare.Refused(matcher.get_error())
        found = []
        for text in texts:
            matcher = compare.llguidance.LLMatcher(self.tokenizer, grammar, log_level=0)
            data = list(text.encode())
            found.append(matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting())
        return found


class XGrammar(compare.XGrammar):
    def matches(self, schema, texts):
        try:
            compiled = self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=False, separators=(",", ":"), strict_mode=False)
        except RuntimeError as error:
            raise compare.Refused(str(error).splitlines()[-1]) from error
        found = []
        for text in texts:
            matcher = compare.xgrammar.GrammarMatcher(compiled)
            found.append(matcher.accept_string(text) and matcher.accept_token(EOS))
        return found


def count(row, case, spans, found):
    row["schemas accepted"] += 1
    for test, (start, end) in zip(case["tests"], spans):
        matched = any(found[start:end])
        row["valid" if test["valid"] else "invalid"] += 1
        row["valid matched" if test["valid"] else "invalid matched"] += matched


def main():
    walk, folder = sys.argv[1:]
    cases = [case for _, case in suite.cases(pathlib.Path(folder))]
    tasks = [suite.task_of(case) for case in cases]
    rows = collections.defaultdict(collections.Counter)
    results = check.run_walk(walk, [task for task, _ in tasks])
    for case, (_, spans), result in zip(cases, tasks, results):
        if "refused" in result:
            rows["iflowc"]["schemas refused"] += 1
        else:
            count(rows["iflowc"], case, spans, result["matches"])
    for engine in LLGuidance([*WORDS, b"</s>"], EOS), XGrammar([*WORDS, b"</s>"], EOS):
        for case, (task, spans) in zip(cases, tasks):
            try:
                found = engine.matches(case["schema"], task["texts"])
            except compare.Refused:
                rows[engine.name]["schemas refused"] += 1
                continue
            count(rows[engine.name], case, spans, found)
    names = ["schemas accepted", "schemas refused", "valid", "valid matched", "invalid", "invalid matched"]
    print("| engine | " + " | ".join(names) + " |\n|---|" + "---:|" * len(names))
    for engine, row in rows.items():
        print(f"| {engine} | " + " | ".join(str(row[n]) for n in names) + " |")


if __name__ == "__main__":
    main()
