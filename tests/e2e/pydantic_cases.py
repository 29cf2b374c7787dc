"""Types and values for test_pydantic.py: validated by pydantic there, and by the worker's own stand-in in a task."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, Optional, Union
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from typing_extensions import TypedDict


class Flag(str, Enum):
    NO = "NO"
    PT = "PT"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Rank(IntEnum):
    FIRST = 1
    SECOND = 2


class Berth(BaseModel):
    """Where a ship lies."""

    number: int = Field(description="Berth number.", ge=1)
    quay: Literal["north", "south"] = "north"


class Ship(BaseModel):
    """A ship."""

    name: str = Field(min_length=2, max_length=8)
    berth: Berth
    previous: list[Berth] = []
    note: Optional[str] = None
    length_m: float | None = Field(default=None, gt=0, description="In metres.")
    tags: dict[str, int] = Field(default_factory=dict)
    flag: Flag = Flag.NO


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: int
    b: bool = False


class Checked(BaseModel):
    low: int
    high: int

    @field_validator("low")
    @classmethod
    def not_negative(cls, value: int) -> int:
        if value < 0:
            raise ValueError("low is below zero")
        return value

    @model_validator(mode="after")
    def in_order(self) -> Checked:
        assert self.low <= self.high, "low is above high"
        return self


class Invoice(BaseModel):
    total: Decimal
    due: date
    sent: datetime | None = None
    lines: list[tuple[str, int]]
    key: UUID | None = None


class Choice(BaseModel):
    value: Union[int, str, list[int]]
    other: Union[Berth, Closed, None] = None


class Named(BaseModel):
    given: int = Field(alias="givenName")
    plain: str = "x"


@dataclass
class Point:
    """A position."""

    lat: float
    lon: float = 0.0
    tags: list[str] = field(default_factory=list)


class Pair(TypedDict):
    left: str
    right: int


TYPES: dict[str, Any] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "any": Any,
    "none": None,
    "list[int]": list[int],
    "set[int]": set[int],
    "tuple": tuple[int, str],
    "tuple...": tuple[int, ...],
    "dict[str, int]": dict[str, int],
    "optional": Optional[int],
    "union": Union[int, list[str]],
    "literal": Literal["a", "b", 1],
    "flag": Flag,
    "level": Level,
    "rank": Rank,
    "date": date,
    "datetime": datetime,
    "time": time,
    "timedelta": timedelta,
    "decimal": Decimal,
    "uuid": UUID,
    "positive": PositiveInt,
    "fives": Annotated[int, Field(multiple_of=5)],
    "short": Annotated[str, Field(max_length=2, pattern="^a")],
    "some": Annotated[list[int], Field(min_length=1, max_length=2)],
    "berth": Berth,
    "ship": Ship,
    "closed": Closed,
    "checked": Checked,
    "invoice": Invoice,
    "choice": Choice,
    "named": Named,
    "point": Point,
    "pair": Pair,
    "list[berth]": list[Berth],
}

SCALARS = ["1", "0", "-3", "1.0", "1.5", '"1"', '" 2 "', '"1.0"', '"x"', '""', "true", "false", '"yes"', "null", "[]", "{}"]

VALUES: dict[str, list[str]] = {
    "int": [*SCALARS, '"1_000"', '"1e2"'],
    "float": [*SCALARS, '"1e2"', "1e3"],
    "bool": [*SCALARS, '"OFF"', "2"],
    "str": ["1", '"x"', "null", "true", "[]"],
    "any": ["1", '{"a": [1, null]}'],
    "none": ["null", "1"],
    "list[int]": ["[1, \"2\"]", '["x", 1, null]', "1", "{}", "null"],
    "set[int]": ["[1, 1]", "1", '["x"]'],
    "tuple": ['[1, "a"]', "[1]", '[1, "a", 3]', "{}", '["x", 1]'],
    "tuple...": ["[]", "[1, 2]", '["x"]', "1"],
    "dict[str, int]": ['{"a": "1"}', '{"a": "x", "b": null}', "[]", "1"],
    "optional": ["null", "1", '"x"', "[]"],
    "union": ["1", '["a"]', '"1"', '"x"', "{}", "[1]"],
    "literal": ['"a"', "1", '"c"', "2", "null"],
    "flag": ['"NO"', '"SE"', "1", "null"],
    "level": ["1", "3", '"1"'],
    "rank": ["1", "3", '"x"'],
    "date": ['"2026-01-31"', '"2026-01-31T00:00:00"', '"2026-01-31T01:00:00"', '"x"', "[]", '"2026-13-01"', '"2026-02-30"'],
    "datetime": ['"2026-01-31T10:00:00Z"', '"2026-01-31T25:00:00"', '"2026-01-32T10:00:00"', '"2026-01-31T10:00:00.5+02:00"', '"2026-01-31"', '"x"', "[]"],
    "time": ['"10:30"', '"10:30:15"', '"x"', "[]"],
    "timedelta": ['"PT1H"', "90", '"x"', "[]"],
    "decimal": ['"1.50"', "2", "1.5", '"x"', "true", "[]"],
    "uuid": ['"0b1c2d3e-0000-4000-8000-000000000000"', "1", "[]"],
    "positive": ["1", "0", '"x"'],
    "fives": ["10", "3"],
    "short": ['"ab"', '"abc"', '"b"', "1"],
    "some": ["[1]", "[]", "[1, 2, 3]"],
    "berth": ['{"number": 1}', '{"number": 0, "quay": "west"}', "{}", "1", "null", '{"number": "2", "more": 1}'],
    "ship": [
        '{"name": "Aurora", "berth": {"number": 1}}',
        '{"name": "A", "berth": {}, "length_m": -1, "flag": "XX", "tags": {"a": "b"}}',
        '{"name": "Aurora Borealis", "berth": {"number": 1, "quay": "up"}, "previous": [{}, {"number": 0}], "note": 1}',
        "{}",
        "[]",
    ],
    "closed": ['{"a": 1}', '{"a": 1, "z": 2, "y": 3}', '{"z": 1}', '{"a": null, "b": "maybe"}'],
    "checked": ['{"low": 1, "high": 2}', '{"low": -1, "high": 2}', '{"low": 3, "high": 2}', '{"low": "x"}'],
    "invoice": [
        '{"total": "12.50", "due": "2026-04-01", "lines": [["rope", 3]]}',
        '{"total": 3, "due": "2026-04-01", "sent": "2026-04-01T10:00:00Z", "lines": [], "key": null}',
        '{"total": "x", "due": "soon", "lines": [["rope"], 1]}',
    ],
    "choice": [
        '{"value": 1}',
        '{"value": "1"}',
        '{"value": ["1"]}',
        '{"value": {}, "other": {"a": 1}}',
        '{"value": 1, "other": {"number": 1}}',
        '{"value": 1, "other": {}}',
    ],
    "named": ['{"givenName": 1}', '{"given": 1}', "{}"],
    "point": ['{"lat": 1}', "{}", '{"lat": "x", "lon": "2"}', "1", '{"lat": 1, "more": 2}'],
    "pair": ['{"left": "a", "right": "1"}', '{"left": 1}', "[]"],
    "list[berth]": ['[{"number": 1}]', '[{"number": 1}, {}, 1]'],
}


def outcome(name: str) -> dict[str, Any]:
    """The schema of a type, and what becomes of its values: a dump, or a list of errors."""
    adapter = TypeAdapter(TYPES[name])
    results: dict[str, Any] = {}
    for text in VALUES[name]:
        try:
            results[text] = adapter.dump_python(adapter.validate_json(text), mode="json")
        except ValidationError as error:
            results[text] = [
                [fault["type"], list(fault["loc"]), fault["msg"], fault["input"]]
                for fault in error.errors(include_url=False, include_context=False)
            ]
    return {"schema": adapter.json_schema(), "results": results}


def outcomes() -> str:
    """The outcomes of all types, as JSON text."""
    found = {}
    for name in TYPES:
        try:
            found[name] = outcome(name)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return json.dumps(found)
