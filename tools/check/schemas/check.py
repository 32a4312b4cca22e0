"""Draws random JSON schemas and holds what the grammars of runtime/text/grammar write to jsonschema.

    check.py WALK [--schemas N] [--seed N]     WALK is the built program of this folder

Every text that ended must be strict JSON, without a declared property twice, and valid. Random instances of the
schemas that jsonschema accepts must be matched. Prints the counts; the exit code is 1 where anything was wrong.
"""

import argparse
import collections
import fractions
import itertools
import json
import random
import re
import subprocess
import sys

import jsonschema

STYLES = ["uniform", "long", "end", "odd", "parts"]
NAMES = ["id", "name", "größe", "a b", 'x"y', "idx", "nam", "naïve\u2028", "$ref", "type", "漢字", "back\\slash", "n\n"]
# Patterns with texts that they match in full.
PATTERNS = {
    "^[A-Z]{2}-\\d+$": ["AB-1", "XY-007"],
    "b+": ["abba", "b", "\nb"],
    "^a|z$": ["ax", "xz", "a\nb"],
    "^\\w+\\s\\S+$": ["ab cd", "x_1\té"],
    "^[^\\d\\s]*$": ["", "ab", "é-"],
    "^.{1,3}$": ["abc", "😀"],
    "^\\W\\D$": ["-a", " é"],
    "[\\u00e9x]": ["é", "axa"],
    '^"\\\\/$': ['"\\/'],
    "^(?:ab|c)*?d?$": ["abcd", ""],
    "^[\\w.-]+@[\\w.-]+$": ["a@b.c"],
    "": ["", "x"],
    "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$": ["1", "-0.5", "+.5"],
    "^(?=.{2,4}$)[a-z]+(?:-[a-z]+)*$": ["ab", "a-b"],
    "^(?:(?!ab).)*$": ["", "ba", "xyz"],
    "(?<!a)b": ["b", "xb"],
    "\\bred\\b": ["red", "a red x"],
    "^[a-c]{1,2}$": ["a", "bc"],
}
FORMATS = {
    "date": ["2024-02-29", "1999-12-31"],
    "date-time": ["2024-02-29T23:59:59Z", "2024-12-31T00:00:00.5+01:00"],
    "time": ["12:00:00Z"],
    "duration": ["P1Y2M3DT4H5M6S", "PT5M", "P2W"],
    "email": ["a.b@example.com"],
    "hostname": ["example.com", "a-1.b"],
    "ipv4": ["192.168.0.1"],
    "ipv6": ["::1", "2001:db8::ff00:42:8329"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
    "uri": ["http://a.b/c?d#e", "urn:x:y"],
    "uri-reference": ["/a?b", "http://a.b/c", "c.d"],
    "iri": ["http://é.b/ü"],
    "json-pointer": ["", "/a~1b/0"],
    "relative-json-pointer": ["0#", "1/a"],
    "uri-template": ["/a{?b,c*}"],
    "idn-hostname": ["ü.example", "a.b"],
    "idn-email": ["ü@é.example"],
    "regex": ["^[a-z]+$", "a|b"],
    "color": ["any text"],
}
TEXTS = ["", "a", "ab", "abc", "é", "😀", "漢字", 'q"\\\n', "\u2028", "x" * 7, "red", "AB-1"]


class Drawer:
    """Draws one schema."""

    def __init__(self, rng, old):
        self.rng, self.old, self.defs = rng, old, {}

    def schema(self):
        for i in range(self.rng.randrange(3)):
            self.defs[f"d{i}"] = True  # may be referred to before it is drawn
        names = list(self.defs)
        root = self.value(0)
        for name in names:
            self.defs[name] = self.value(2)
        if not isinstance(root, dict):
            root = {"allOf": [root]}
        if self.defs:
            root = {**root, "$defs": self.defs}
        if self.old:
            root = {"$schema": "http://json-schema.org/draft-07/schema#", **root}
        return root

    def value(self, depth):
        rng = self.rng
        p = rng.random()
        if depth > 3:
            return self.scalar()
        if p < 0.03:
            return True
        if rng.random() < 0.12:
            return self.logic(depth)
        if p < 0.10 and self.defs:
            s = {"$ref": "#/$defs/" + rng.choice(list(self.defs))}
            if not self.old and rng.random() < 0.3:
                s.update(self.scalar())
            return s
        if p < 0.20:
            return self.constants(depth)
        if p < 0.28:
            s = {"anyOf": [self.value(depth + 1) for _ in range(rng.randint(1, 3))]}
            if rng.random() < 0.3:
                s.update(rng.choice([{"type": ["string", "integer", "object"]}, {"minimum": 2}, {"required": [rng.choice(NAMES)]}, {"maxLength": 4}]))
            return s
        if p < 0.38:
            return {"oneOf": self.exclusive(depth)}
        if p < 0.46:
            s = self.typed(depth)
            extra = [self.typed(depth, s.get("type")) for _ in range(rng.randint(1, 2))]
            return {"allOf": [s] + extra} if rng.random() < 0.5 else {**s, "allOf": extra}
        if p < 0.52:
            return {**self.number(), **self.string(), **rng.choice([{}, {"required": [rng.choice(NAMES)]}, {"minItems": 1}])}
        return self.typed(depth)

    def logic(self, depth):
        """Keywords that combine schemas, beside a type."""
        rng = self.rng
        s = self.typed(depth)
        kind = s["type"]
        other = lambda: self.typed(depth + 1, kind)
        p = rng.random()
        if p < 0.3:
            return {**s, "not": other() if rng.random() < 0.7 else self.constants(9)}
        if p < 0.55:
            s = {**s, "if": other(), "then": other()}
            if rng.random() < 0.6:
                s["else"] = other()
            return s
        if p < 0.75:
            return {"oneOf": [s, other(), other()][: rng.randint(2, 3)]}
        s = {k: v for k, v in self.object(depth).items() if k != "additionalProperties"} | {"type": "object"}
        names = list(s.get("properties", {})) or NAMES[:2]
        if p < 0.85:
            return {**s, "dependentRequired": {rng.choice(names): rng.sample(names, 1)}} if not self.old else {**s, "dependencies": {rng.choice(names): rng.sample(names, 1)}}
        if self.old:
            return s
        if p < 0.9:
            return {**s, "dependentSchemas": {rng.choice(names): self.typed(depth + 1, "object")}}
        return {**s, "allOf": [{"properties": self.typed(depth + 1, "object").get("properties", {})}, {"anyOf": [{"required": [rng.choice(names)]}, True]}], "unevaluatedProperties": rng.choice([False, self.scalar()])}

    def typed(self, depth, kind=None):
        rng = self.rng
        kind = kind or rng.choice(["object", "object", "object", "array", "string", "number", "integer", "boolean", "null"])
        if not isinstance(kind, str):
            kind = kind[0]
        keywords = {"object": self.object, "array": self.array}.get(kind)
        if keywords:
            s = keywords(depth)
        else:
            s = {"string": self.string, "number": self.number, "integer": self.number}.get(kind, dict)()
        if rng.random() < 0.1:
            kind = [kind, rng.choice([k for k in ["null", "boolean", "string"] if k != kind])]
        return {"type": kind, **s}

    def scalar(self):
        return self.typed(9, self.rng.choice(["string", "number", "integer", "boolean", "null"]))

    def string(self):
        p = self.rng.random()
        if p < 0.3:
            return {}
        if p < 0.5:
            return {"pattern": self.rng.choice(list(PATTERNS))}
        if p < 0.7:
            return {"format": self.rng.choice(list(FORMATS))}
        if p < 0.85:
            return self.texts()
        lo = self.rng.randrange(4)
        return self.rng.choice([{"minLength": lo}, {"maxLength": lo + 2}, {"minLength": lo, "maxLength": lo + self.rng.randrange(4)}])

    def texts(self):
        """Several conditions on one string."""
        rng = self.rng
        s = {}
        if rng.random() < 0.7:
            s["pattern"] = rng.choice(list(PATTERNS))
        if rng.random() < 0.5:
            s["format"] = rng.choice([f for f in FORMATS if f not in ("idn-email", "idn-hostname", "uri-template", "regex")])
        if rng.random() < 0.6:
            s["minLength"] = rng.randrange(5)
        if rng.random() < 0.6:
            s["maxLength"] = rng.randint(4, 40)
        if rng.random() < 0.3:
            s["allOf"] = [{"pattern": rng.choice(list(PATTERNS))}]
        return s

    def limit(self):
        rng = self.rng
        return rng.choice([rng.randint(-20, 20), round(rng.uniform(-5, 5), rng.randint(1, 3)), rng.choice([0, 0.1, 1e3, -2.50, 255, 10**12])])

    def number(self):
        rng = self.rng
        p = rng.random()
        if p < 0.25:
            return {}
        if p < 0.35:
            return {"multipleOf": rng.choice([1, 2, 3, 7, 10, 97, 0.1, 0.01, 1.0])}
        if p < 0.5:
            lo = self.limit()
            s = {"multipleOf": rng.choice([1, 2, 3, 7, 10, 97, 0.1, 0.25, 2.5, 0.01]), rng.choice(["minimum", "exclusiveMinimum"]): lo}
            if rng.random() < 0.7:
                s["maximum"] = lo + rng.choice([10, 50, 1000])
            return s
        lo, hi = sorted([self.limit(), self.limit()])
        s = {}
        if rng.random() < 0.7:
            s[rng.choice(["minimum", "exclusiveMinimum"])] = lo
        if rng.random() < 0.7:
            s[rng.choice(["maximum", "exclusiveMaximum"])] = hi
        return s

    def array(self, depth):
        rng = self.rng
        s = {}
        p = rng.random()
        if p < 0.6:
            s["items"] = self.value(depth + 1)
        elif p < 0.85:
            prefix = [self.value(depth + 1) for _ in range(rng.randint(1, 3))]
            rest = rng.choice([False, True, self.scalar()])
            s.update({"items": prefix, "additionalItems": rest} if self.old else {"prefixItems": prefix, "items": rest})
        if rng.random() < 0.3:
            s["minItems"] = rng.randrange(3)
        if rng.random() < 0.3:
            s["maxItems"] = rng.randrange(2, 5)
        if rng.random() < 0.15:
            s["uniqueItems"] = True
            if rng.random() < 0.5:
                s["items"] = rng.choice([{"enum": [1, 2, "a", "ab", None]}, {"type": "boolean"}, {"type": "integer", "minimum": 0, "maximum": 12}, {"type": "string", "pattern": "^[a-c]{1,2}$"}, {"type": "object"}])
                s.pop("prefixItems", s.pop("additionalItems", None))
        elif rng.random() < 0.15:
            s["contains"] = rng.choice([self.scalar(), self.constants(9)])
            if not self.old and rng.random() < 0.5:
                s["minContains"] = rng.randrange(3)
            if not self.old and rng.random() < 0.5:
                s["maxContains"] = rng.randint(1, 3)
            if s.get("maxContains", 3) < s.get("minContains", 1):
                del s["maxContains"]
        if not self.old and not s.get("items") and "items" not in s and rng.random() < 0.2:
            s["unevaluatedItems"] = rng.choice([False, self.scalar()])
        return s

    def object(self, depth):
        rng = self.rng
        names = rng.sample(NAMES, rng.randrange(5))
        s = {"properties": {n: self.value(depth + 1) for n in names}} if names else {}
        if rng.random() < 0.6:
            s["required"] = [n for n in names if rng.random() < 0.6] + ([rng.choice(NAMES)] if rng.random() < 0.15 else [])
            s["required"] = list(dict.fromkeys(s["required"]))
        if rng.random() < 0.7:
            s["additionalProperties"] = rng.choice([False, False, False, True, self.scalar()])
        if rng.random() < 0.1:
            s["patternProperties"] = {rng.choice(["^n", "x$", "^[a-z]{2}$", "ö"]): self.scalar() for _ in range(rng.randint(1, 2))}
        if rng.random() < 0.1:
            s["propertyNames"] = rng.choice([{"enum": NAMES[:4]}, {"pattern": "^[a-z]+$"}, {"maxLength": 4}, {"not": {"const": "id"}}, {"format": "date"}])
        if rng.random() < 0.1:
            s["minProperties"] = rng.choice([0, 1, 1, 2])
        if rng.random() < 0.1:
            s["maxProperties"] = rng.choice([1, 3, 6])
        return s

    def constant(self, depth=0):
        rng = self.rng
        kinds = [None, True, False, 0, 1, -7, 2.5, 1.0, 1e2, 12345678901234567890, *rng.sample(TEXTS, 3), "2024-02-29", "2023-02-29"]
        if depth < 2:
            kinds += [[self.constant(depth + 1) for _ in range(rng.randrange(3))], {n: self.constant(depth + 1) for n in rng.sample(NAMES, rng.randrange(3))}]
        return rng.choice(kinds)

    def constants(self, depth):
        rng = self.rng
        s = {"const": self.constant()} if rng.random() < 0.3 else {"enum": [self.constant() for _ in range(rng.randint(1, 8))]}
        if rng.random() < 0.6:
            s.update(rng.choice([{"type": ["integer", "string"]}, {"type": "number"}, self.number(), self.string(), self.object(depth + 1), self.array(depth + 1),
                                 {"anyOf": [self.scalar(), self.typed(depth + 1)]}, {"oneOf": [self.scalar(), self.scalar()]}, {"allOf": [self.string(), self.number()]}]))
        return s

    def exclusive(self, depth):
        """Schemas for oneOf, most of which no value meets at once."""
        rng = self.rng
        p = rng.random()
        if p < 0.35:
            key = rng.choice(NAMES)
            out = []
            for tag in rng.sample(["cat", "dog", "größe", 1, 2.0, None], rng.randint(1, 3)):
                s = {"type": "object", **self.object(depth + 1)}
                s["properties"] = {key: rng.choice([{"const": tag}, {"enum": [tag]}]), **{k: v for k, v in s.get("properties", {}).items() if k != key}}
                s["required"] = list(dict.fromkeys([key] + s.get("required", [])))
                out.append(s)
            return out
        if p < 0.6:
            return [self.typed(depth + 1, k) for k in rng.sample(["object", "array", "string", "number", "boolean", "null"], rng.randint(1, 3))]
        if p < 0.75:
            cut = self.limit()
            return [{"type": "number", "maximum": cut}, {"type": "number", rng.choice(["exclusiveMinimum", "exclusiveMinimum", "minimum"]): cut}]
        if p < 0.9:
            return [self.constants(9), self.constants(9), {"type": "object", "maxProperties": 0}]
        return [self.value(depth + 1) for _ in range(2)]


class Instances:
    """Draws values that may meet a schema, with properties in its order."""

    def __init__(self, rng, root):
        self.rng, self.root = rng, root

    def value(self, s, depth=0):
        rng = self.rng
        if s is True or s == {}:
            return rng.choice([None, 1, "x", [], {"k": 1}])
        if s is False or depth > 8:
            return None
        if "const" in s:
            return s["const"]
        if "enum" in s:
            return rng.choice(s["enum"])
        if "$ref" in s:
            return self.value(self.root["$defs"][s["$ref"].split("/")[-1]], depth + 1)
        for word in ("anyOf", "oneOf"):
            if word in s:
                return self.value(rng.choice(s[word]), depth + 1)
        kind = s.get("type") or rng.choice(["object", "array", "string", "number", "boolean", "null"])
        kind = kind if isinstance(kind, str) else rng.choice(kind)
        return getattr(self, kind)(s, depth)

    def null(self, s, depth):
        return None

    def boolean(self, s, depth):
        return self.rng.random() < 0.5

    def string(self, s, depth):
        return self.rng.choice(PATTERNS.get(s.get("pattern"), TEXTS) if "pattern" in s else FORMATS.get(s.get("format"), TEXTS))

    def integer(self, s, depth):
        return self.rng.choice([0, 1, -1, 7, 21, 97, 255, -20, self.rng.randint(-30, 30), self.rng.randint(-(10**12), 10**12)])

    def number(self, s, depth):
        return self.rng.choice([self.integer(s, depth), round(self.rng.uniform(-6, 6), self.rng.randint(1, 4))])

    def array(self, s, depth):
        prefix, rest = s.get("prefixItems", []), s.get("items", True)
        if isinstance(rest, list):
            prefix, rest = rest, s.get("additionalItems", True)
        n = self.rng.randint(s.get("minItems", 0), max(s.get("maxItems", 3), s.get("minItems", 0)))
        return [self.value(prefix[i] if i < len(prefix) else rest, depth + 1) for i in range(n)]

    def object(self, s, depth):
        required, out = s.get("required", []), {}
        for name, sub in s.get("properties", {}).items():
            if name in required or self.rng.random() < 0.5:
                out[name] = self.value(sub, depth + 1)
        for name in required:
            if name not in out:
                out[name] = self.value(s.get("additionalProperties", True), depth + 1)
        if s.get("additionalProperties", True) is not False and self.rng.random() < 0.3:
            out["other"] = self.value(s.get("additionalProperties", True), depth + 1)
        return out


def whole(v):
    """Whole numbers without a point, as they are written."""
    if isinstance(v, float) and v.is_integer():
        return int(v)
    if isinstance(v, list):
        return [whole(x) for x in v]
    return {k: whole(x) for k, x in v.items()} if isinstance(v, dict) else v


def orders(v, most=200):
    """The value with its members in all orders, up to a limit, first its own."""
    if isinstance(v, list):
        parts = [orders(x, most) for x in v]
        return [list(p) for p in itertools.islice(itertools.product(*parts), most)]
    if isinstance(v, dict):
        out = []
        for names in itertools.permutations(v):
            for values in itertools.product(*(orders(v[k], most) for k in names)):
                out.append(dict(zip(names, values)))
                if len(out) == most:
                    return out
        return out
    return [v]


def spellings(value, separators):
    """The texts of a value. A schema may also hold where another order of members is written than where it was drawn."""
    texts = [json.dumps(o, ensure_ascii=False, separators=separators) for o in orders(value, 40)]
    # U+2028 is escaped in names and constants, and as it is in other strings.
    return [spelled for t in texts for spelled in (t, t.replace("\u2028", "\\u2028"))]


def simple(s):
    """Whether the order of the properties that are written is plain: nothing joins schemas."""
    if isinstance(s, list):
        return all(map(simple, s))
    if not isinstance(s, dict):
        return True
    joins = any(w in s for w in ("allOf", "not", "if", "dependentSchemas", "dependentRequired", "dependencies", "propertyNames")) or any(w in s for w in ("anyOf", "oneOf", "$ref")) and not set(s) <= {"anyOf", "oneOf", "$ref", "$defs", "$schema"}
    objects = [sub for sub in s.get("oneOf", []) if isinstance(sub, dict) and "object" in str(sub.get("type", "object"))]
    joins = joins or len(objects) > 1 and not all("required" in sub for sub in objects)
    return not joins and all(simple(v) for k, v in s.items() if k not in ("const", "enum"))


def multiple_of(validator, step, instance, schema):
    """Exactly, by the decimals that were written: in doubles 0.07 is no multiple of 0.01."""
    if validator.is_type(instance, "number") and fractions.Fraction(repr(instance)) % fractions.Fraction(repr(step)):
        yield jsonschema.ValidationError(f"{instance} is no multiple of {step}")


def ascii_pattern(validator, pattern, instance, schema):
    """As ECMA-262 reads it: $ is the text's end, not a line end before it, and classes are the ASCII ones."""
    if validator.is_type(instance, "string") and not re.search(re.sub(r"(\\.)|\$", lambda m: m[1] or r"\Z", pattern), instance, re.ASCII):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def validator_of(schema, formats=True, more={}):
    base = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    base.check_schema(schema)
    return jsonschema.validators.extend(base, {"multipleOf": multiple_of} | more)(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER if formats else None)


def accepts(validator, value):
    try:
        return validator.is_valid(value)
    except (RecursionError, re.error):  # a $ref that comes back to itself, a pattern that reads otherwise
        return False


def strict(text, repeated):
    def pairs(items):
        out = {}
        for k, v in items:
            if k in out:
                repeated.append(k)
            out[k] = v
        return out

    def refuse(name):
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)


def outside_space(text):
    """The white space of a text that is not in its strings."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    return re.sub(r"([:,]) (?! )", r"\1", bare)


def draw(args):
    tasks = []
    for i in range(args.schemas):
        rng = random.Random(f"{args.seed} {i}")
        schema = Drawer(rng, rng.random() < 0.15).schema()
        # What one validator refuses need not be matched: formats may be checked or not, patterns read in two ways.
        validators = [validator_of(schema, formats, more) for formats in (True, False) for more in ({}, {"pattern": ascii_pattern})]
        texts, groups = [], []
        if simple(schema):
            for _ in range(8):
                value = Instances(rng, schema).value(schema)
                if all(accepts(v, value) for v in validators) and "e" not in repr(value if isinstance(value, float) else 0):
                    spelled = spellings(whole(value), (",", ":") if rng.random() < 0.5 else (", ", ": "))
                    texts += spelled
                    groups.append(len(spelled))
        tasks.append({"schema": schema, "seed": rng.getrandbits(60), "styles": STYLES, "tokens": 160, "texts": texts, "groups": groups})
    return tasks


def examine(task, result, counts, reasons, wrong):
    schema = task["schema"]
    if "refused" in result:
        counts["schemas refused"] += 1
        reasons[re.sub(r"^schema at \S+: |[0-9.]+|\"[^\"]*\"", "", result["refused"])[:70]] += 1
        # Known formats are kept here, where jsonschema ignores those that it has no checker for.
        if "matches no text" in result["refused"] and task["texts"] and '"format"' not in json.dumps(schema):
            wrong.append((schema, "refused as empty", task["texts"][0]))
        return
    validators = [validator_of(schema, formats) for formats in (True, False)]
    for t in result["texts"]:
        counts["pairs"] += 1
        if t.get("error"):
            counts["dead ends"] += 1
            wrong.append((schema, t["style"] + ": " + t["error"], t["text"]))
        if not t["ended"]:
            continue
        counts["ended"] += 1
        try:
            repeated = []
            value = strict(t["text"], repeated)
            error = next((e for v in validators if (e := jsonschema.exceptions.best_match(v.iter_errors(value)))), None)
            if any(k in NAMES and not k.isalpha() or k in ("größe", "漢字") for k in repeated):
                error = f"{repeated} twice"
            elif re.search(r"\s", outside_space(t["text"])):
                error = "white space"
            counts["undeclared names twice"] += bool(repeated)
        except RecursionError:  # references in a circle, by which jsonschema says nothing
            counts["circles"] += 1
            continue
        except ValueError as e:
            error = e
        if error is None:
            counts["valid"] += 1
        else:
            wrong.append((schema, f"{t['style']}: {str(error)[:200]}", t["text"]))
    start = 0
    for n in task["groups"]:
        text, ok = task["texts"][start], any(result["matches"][start : start + n])
        start += n
        counts["instances"] += 1
        counts["matched"] += ok
        if not ok:
            wrong.append((schema, "not matched", text))


def run_walk(walk, tasks):
    """The results of the program for tasks."""
    lines = "".join(json.dumps(t) + "\n" for t in tasks)
    out = subprocess.run([walk], input=lines, capture_output=True, text=True, check=False)
    if out.returncode:
        sys.exit(out.stderr[-2000:])
    return [json.loads(line) for line in out.stdout.removesuffix("\n").split("\n")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("walk")
    parser.add_argument("--schemas", type=int, default=800)
    parser.add_argument("--seed", default="1")
    args = parser.parse_args()
    tasks = draw(args)
    counts, reasons, wrong = collections.Counter(), collections.Counter(), []
    for task, result in zip(tasks, run_walk(args.walk, tasks), strict=True):
        examine(task, result, counts, reasons, wrong)
    checked = sorted(set(FORMATS) & set(jsonschema.Draft202012Validator.FORMAT_CHECKER.checkers))
    print(f"seed {args.seed}: {len(tasks)} schemas; formats that are checked: {', '.join(checked)}")
    for name in ("schemas refused", "pairs", "ended", "valid", "dead ends", "circles", "undeclared names twice", "instances", "matched"):
        print(f"  {name}: {counts[name]}")
    for reason, n in reasons.most_common(25):
        print(f"  refused {n}: {reason}")
    for schema, what, text in wrong[:20]:
        print(f"WRONG {what}\n  schema {json.dumps(schema, ensure_ascii=False)}\n  text {text!r}")
    if counts["schemas refused"] > len(tasks) * 0.5:
        wrong.append("refused")
        print("WRONG more than half of the schemas were refused")
    if counts["pairs"] >= 500 and counts["ended"] < counts["pairs"] * 0.7:
        wrong.append("ended")
        print("WRONG fewer than 7 of 10 texts ended")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
