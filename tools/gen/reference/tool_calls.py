"""Parses values and calls of answers with transformers and writes the results, or that an error is raised.

    tool_calls.py > ../../../runtime/text/chat/testdata/tool_calls.json
"""

import json
import sys

from transformers.utils.chat_parsing import content_parsers, response_parser

VALUES = [
    "", "x", " x ", "3", " 3\n", "-3", "3.0", "3.5", "1e3", "1E400", "nan", "inf", "-0", "007", "+5", ".5", "12345678901234567890",
    "true", "True", "FALSE", " true ", "1", "0", "yes", "null", "None", " null", "none", "[1, 2]", "[]", " [1] ", "[1, 2", "[{'a': 1}]",
    '{"a": [null, "x"]}', "{}", '"x"', '["a", {"b": 1.5e-3}]', '{"a": 1} x', "漢\n<b>", "3 4", "0x10",
]
TYPES = [
    [], ["string"], ["integer"], ["number"], ["boolean"], ["null"], ["array"], ["object"], ["string", "null"], ["integer", "null"],
    ["string", "integer"], ["boolean", "number", "string"], ["array", "object"], ["object", "string"],
]
CALLS = [
    "[f()]", '[f(a="x")]', "[f(a='x', b=1)]", "[f(a=1), g(b=[1, -2.5, 1e3], c={'k': None, \"l\": [True, False]})]", "[ f ( a = 1 , b = 'y' ) ]",
    r"""[f(a='it\'s', b="\"q\"", c='\n\t\\ \u00e9\ud83d\ude00')]""", "[f(a='[x(1), {y: \"z\"}]')]", "[f(a='')]", "[f(a=[], b={}, c=[[], [{}]])]",
    "[f(a={'x': {'y': {'z': [1, [2, [3]]]}}})]", "[ns.f-g(a_b=0)]", "[f(a=true, b=false, c=null)]", "[f(a='a, b) ]', b=2)]", "[f(a='漢字 🙂')]",
    "[f(a='tab\there')]", "[f(a=1.5, b=-0.0, c=1E-2)]", "[f(a=\"it's\"), f(a='\"')]", "[]", "f()", "[f(1)]", "[f(a=x)]", "[f(a='x)]", "[f(a=1]", "[f(a=1)] x",
]


def attempt(case, run):
    try:
        case["result"] = run()
        json.dumps(case["result"], allow_nan=False)
    except ValueError as e:
        case.pop("result", None)
        case["error"] = str(e)[:60]
    return case


def main():
    values = [attempt({"text": v, "types": t}, lambda: response_parser._coerce(v, tuple(t))) for t in TYPES for v in VALUES]
    calls = [attempt({"text": c}, lambda: content_parsers.parse_content(c, "python-call-list", {})) for c in CALLS]
    json.dump({"values": values, "calls": calls}, sys.stdout, ensure_ascii=False, indent=0)
    print()


main()
