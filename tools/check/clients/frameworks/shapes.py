"""The schemas and the tool that the suites of all Python frameworks use. Some frameworks leave lengths and ranges out of
schemas, so no field is a text of any length: a model with random weights would not end it."""

import datetime
import uuid
from typing import Literal, Optional

import pydantic


class Address(pydantic.BaseModel, extra="forbid"):
    country: Literal["FR", "JP"]
    floor: int


class Order(pydantic.BaseModel, extra="forbid"):
    """An order of drinks."""

    drink: Literal["tea", "coffee"]
    count: int
    price: float
    hot: bool
    note: Optional[Literal["sweet", "plain"]]
    sizes: list[Literal["small", "large"]]
    address: Address
    day: datetime.date
    id: uuid.UUID
    amount: int | Literal["all"]


class Small(pydantic.BaseModel, extra="forbid"):
    """Constraints on values."""

    name: str = pydantic.Field(min_length=1, max_length=12)
    code: str = pydantic.Field(pattern="^[A-Z]{2}[0-9]{3}$")
    age: int = pydantic.Field(ge=0, le=150)
    tags: list[Literal["a", "b"]] = pydantic.Field(min_length=1, max_length=3)


TEXT = "It is sunny."  # what the proxy lets the model say
HELLO = "Say hello."
CITIES = []  # of the calls of the tool


def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: name of the city
    """
    CITIES.append(city)
    return "sunny in " + city


def called():
    """Reports whether get_weather was called for Paris since the last time."""
    cities = CITIES[:]
    CITIES.clear()
    return cities == ["Paris"]


FUNCTION = {
    "name": "get_weather", "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
}
