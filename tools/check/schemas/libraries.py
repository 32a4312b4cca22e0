"""Holds the grammars of runtime/text/grammar to the schemas that Pydantic and Zod write for each of their types.

    libraries.py WALK [ZOD]     WALK is the built program of this folder, ZOD the output of zod.mjs

All schemas must be accepted, and every text that ended must be valid for jsonschema with its formats. The exit code is
1 where anything was wrong.
"""

import collections
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import re
import sys
import typing
import uuid
from typing import Annotated, Literal, Optional, Union

import pydantic
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, conbytes, condecimal, confloat, conint, conlist, constr

import check


class Color(enum.Enum):
    RED, GREEN = "red", "green"


class Number(enum.IntEnum):
    ONE, TWO = 1, 2


class Tree(BaseModel):
    v: int
    kids: list["Tree"] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Forbid(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Allow(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int
    b: Optional[str] = None


class Root(RootModel[list[int]]):
    pass


class Point(typing.NamedTuple):
    x: int
    y: str = ""


class Person(BaseModel):
    email: pydantic.EmailStr
    id: uuid.UUID
    born: datetime.date
    site: pydantic.HttpUrl
    pets: list[Annotated[Union[Cat, Dog], Field(discriminator="kind")]]
    tags: set[str] = set()
    scores: dict[Color, conint(ge=0, le=10)] = {}


NAMED = """EmailStr AnyUrl HttpUrl AnyHttpUrl FtpUrl FileUrl WebsocketUrl PostgresDsn RedisDsn NameEmail IPvAnyAddress
IPvAnyNetwork UUID1 UUID3 UUID4 UUID5 UUID6 UUID7 UUID8 SecretStr SecretBytes NewPath PastDate FutureDate PastDatetime
AwareDatetime NaiveDatetime StrictInt StrictStr PositiveInt NonNegativeFloat NegativeInt FiniteFloat ByteSize Base64Bytes
Base64Str Base64UrlStr JsonValue StrictBool""".split()
TYPES = {name: getattr(pydantic, name) for name in NAMED if hasattr(pydantic, name)} | {
    "constr": constr(min_length=2, max_length=5, pattern="^[a-z]+$"), "conint": conint(ge=3, lt=100, multiple_of=5), "confloat": confloat(gt=0, le=1),
    "confloat multiple": confloat(ge=0, le=1, multiple_of=0.25), "condecimal": condecimal(max_digits=5, decimal_places=2), "condecimal limits": condecimal(gt=0, le=100),
    "decimal": decimal.Decimal, "date": datetime.date, "datetime": datetime.datetime, "time": datetime.time, "timedelta": datetime.timedelta, "uuid": uuid.UUID,
    "ipv4": ipaddress.IPv4Address, "ipv6": ipaddress.IPv6Address, "ipv4 network": ipaddress.IPv4Network, "path": pathlib.Path, "bytes": bytes, "conbytes": conbytes(min_length=2, max_length=5),
    "enum": Color, "int enum": Number, "dict of enum": dict[Color, int], "dict of literals": dict[Literal["a", "b"], int], "dict of pattern": dict[constr(pattern="^[a-z]{2,4}$"), int],
    "dict of lengths": dict[constr(min_length=2, max_length=4), int], "dict of int": dict[int, str], "dict of uuid": dict[uuid.UUID, str], "dict of date": dict[datetime.date, int],
    "dict of url": dict[pydantic.AnyUrl, int], "dict of email": dict[pydantic.EmailStr, int], "dict": dict, "dict with length": Annotated[dict[str, int], Field(min_length=2, max_length=3)],
    "set": set[int], "set of str": set[str], "set of enum": set[Color], "frozenset": frozenset[str], "set with length": Annotated[set[int], Field(min_length=2, max_length=4)],
    "set of literals": set[Literal["a", "b", "c"]], "set of tuples": set[tuple[int, str]], "set of float": set[float], "set of bool": set[bool], "set of date": set[datetime.date],
    "tuple": tuple[int, str], "tuple of any length": tuple[int, ...], "empty tuple": tuple[()], "literals": Literal["a", 1, None, True], "union": Union[int, str], "optional": Optional[int],
    "discriminated": Annotated[Union[Cat, Dog], Field(discriminator="kind")], "recursive": Tree, "forbid": Forbid, "allow": Allow, "root": Root, "named tuple": Point, "person": Person,
    "conlist": conlist(int, min_length=1, max_length=3), "multiple": Annotated[int, Field(multiple_of=3)], "pattern and length": Annotated[str, Field(pattern=r"\d", max_length=10)],
    "json": pydantic.Json[list[int]], "regex": re.Pattern, "tenths": Annotated[float, Field(ge=0, lt=1, multiple_of=0.1)], "defaultdict": typing.DefaultDict[str, list[int]], "any": typing.Any,
}
# Schemas that older versions of the libraries write.
OLDER = {
    "decimal of Pydantic 2.12": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}]},
    "decimal with digits": {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,3}|(?=[\d.]{1,6}0*$)\d{0,3}\.\d{0,2}0*$)"},
}


def schemas(zod):
    for name, kind in TYPES.items():
        for mode in ("validation", "serialization"):
            yield f"pydantic {name} ({mode})", TypeAdapter(kind).json_schema(mode=mode)
    yield from OLDER.items()
    if zod:
        for line in pathlib.Path(zod).read_text().splitlines():
            case = json.loads(line)
            yield case["name"], case["schema"]


def main():
    walk, zod = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    cases = list(schemas(zod))
    counts, wrong = collections.Counter(), []
    tasks = [{"schema": schema, "seed": 1, "styles": check.STYLES, "tokens": 250, "texts": []} for _, schema in cases]
    for (name, schema), result in zip(cases, check.run_walk(walk, tasks), strict=True):
        counts[name.split()[0]] += 1
        if "refused" in result:
            wrong.append(f"{name} is refused: {result['refused']}")
            continue
        for t in result["texts"]:
            if t.get("error"):
                wrong.append(f"{name}: {t['error']}: {t['text']}")
            if not t["ended"]:
                continue
            counts["texts"] += 1
            try:
                wrong += [f"{name}: {t['text']}: {e.message}" for e in check.validator_of(schema).iter_errors(json.loads(t["text"]))]
                counts["judged"] += 1
            except (re.error, check.jsonschema.exceptions.SchemaError):
                counts["not judged"] += 1  # patterns that only ECMA-262 knows
    print("schemas of libraries: " + ", ".join(f"{k} {v}" for k, v in counts.items()))
    for w in wrong[:30]:
        print("WRONG " + w[:600])
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
