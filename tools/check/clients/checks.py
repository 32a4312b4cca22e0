"""The base of the suites of the Python clients.

    python3 SUITE.py BASE_URL [--key KEY] [--perplexity JSON --text FILE]

A suite is a class whose methods check_NAME are the checks. Each prints one line. The last line, which begins with ===,
has the counts. The exit code is 1 if a check failed."""

import argparse
import json
import sys
import traceback
import urllib.request

import pydantic

CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"], "additionalProperties": False}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
# Regular expressions for whole answers, in the form of the calls of chat.jinja: any decoder writes what they match.
CALL = r'\{"name": "get_weather", "parameters": \{"city": "Paris"\}\}'
THOUGHT = "some thought"
THINK = THOUGHT + "</think>"  # the template has written <think>


class Person(pydantic.BaseModel, extra="forbid"):
    name: str = pydantic.Field(max_length=20)
    age: int = pydantic.Field(ge=0, le=150)


class Suite:
    def __init__(self, options):
        self.base, self.key = options.base_url.rstrip("/"), options.key
        self.perplexity, self.text = options.perplexity, options.text
        self.model = json.loads(self.get("/v1/models"))["data"][0]["id"]

    def request(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Authorization": "Bearer " + self.key, "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.read().decode()

    def get(self, path):
        return self.request(path)

    def post(self, path, body):
        return json.loads(self.request(path, body))


def raised(kind, call):
    """Calls and returns the error of that kind, which must come."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was expected, and no error came")


def main(title, suite):
    """Runs the checks of a suite."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base_url")
    parser.add_argument("--key", default="none")
    parser.add_argument("--perplexity")
    parser.add_argument("--text")
    suite = suite(parser.parse_args())
    names = [n for n in dir(suite) if n.startswith("check_")]
    failed = 0
    for name in names:
        try:
            note = getattr(suite, name)()
            print(f"ok    {name[6:]}" + (f" ({note})" if note else ""))
        except Exception as error:  # a check that breaks has failed, and the others go on
            failed += 1
            frame = [f for f in traceback.extract_tb(error.__traceback__) if f.name == name][-1:]
            where = f"line {frame[0].lineno}: {frame[0].line}: " if frame else ""
            print(f"FAIL  {name[6:]}: {where}{type(error).__name__}: {' '.join(str(error).split())[:600]}")
    print(f"=== {title}: {len(names) - failed} of {len(names)} passed", flush=True)
    sys.exit(1 if failed else 0)
