"""Values between the stages of a job come out as they went in, and bring no code with them."""

from __future__ import annotations

import enum
import pickle
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack
import msgspec
import numpy
import pydantic
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.bulk.targets.carried_values import dumps, loads
from pykstreams.bulk.targets.target import RowError

ROOT = Path(__file__).parents[4]


class Colour(enum.Enum):
    RED = 1


class Place(NamedTuple):
    x: int
    y: int | None = None


@dataclass(frozen=True, slots=True)
class Order:
    item: str
    places: list[Place] = field(default_factory=list)


class Model(pydantic.BaseModel):
    name: str
    at: datetime | None = None


class Struct(msgspec.Struct):
    name: str


NOON = datetime(2026, 3, 1, 12, 30, 1, 7)
ZONES = st.sampled_from([None, UTC, ZoneInfo("Europe/Paris"), timezone(timedelta(hours=5))])
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=ZONES, allow_imaginary=False)  # a local time that no clock shows has no instant
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(PLAIN)
def test_plain_values_come_out_as_they_went_in(value: object) -> None:
    again = loads(dumps(value))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        frozenset("a"),
        Colour.RED,
        Place(1),
        Order("tea", [Place(1, 2)]),
        Model(name="a", at=NOON.replace(tzinfo=UTC)),
        Struct("a"),
        StringValue(value="a"),
        UUID(int=7),
        [(1, {"a": Decimal("1.50")}), date(2026, 3, 1), time(12, 1)],
    ],
)
def test_objects_of_data_come_out_as_they_went_in(value: object) -> None:
    again = loads(dumps(value))
    assert again == value
    assert type(again) is type(value)


def test_the_time_of_a_zone_stays_in_it() -> None:
    paris = ZoneInfo("Europe/Paris")
    later = datetime(2026, 10, 25, 2, 30, tzinfo=paris, fold=1)
    again = loads(dumps(later))
    assert isinstance(again, datetime)
    assert (again.tzinfo, again.utcoffset(), again.timestamp()) == (paris, later.utcoffset(), later.timestamp())


def test_numbers_of_numpy_are_plain_numbers() -> None:
    assert loads(dumps([numpy.int32(3), numpy.float16(0.5)])) == [3, 0.5]


class Secretive:
    pass


@pytest.mark.parametrize("value", [Secretive(), print, [object()], {"a": lambda: 1}])
def test_what_is_no_data_is_refused_with_what_to_do(value: object) -> None:
    with pytest.raises(RowError, match="cannot travel from one stage of the job to the next: give plain values"):
        dumps(value)


@pytest.mark.parametrize(("module", "name"), [("os", "system"), ("builtins", "eval"), ("subprocess", "Popen")])
def test_bytes_cannot_name_a_function_to_be_called(module: str, name: str) -> None:
    for form in ("enum", "namedtuple", "pydantic", "dataclass", "struct", "protobuf"):
        raw = msgpack.packb(msgpack.ExtType(10, msgpack.packb([module, name, form, ["true"]])))
        with pytest.raises(RowError, match="no class of data"):
            loads(raw)


def test_pickles_are_not_read() -> None:
    with pytest.raises(msgpack.ExtraData):
        loads(pickle.dumps({"a": 1}))


def test_no_module_of_the_package_pickles() -> None:
    """What PySpark and ``multiprocessing`` do to hand functions to their own processes is theirs."""
    found = [
        str(path.relative_to(ROOT))
        for folder in ("pykstreams", "processors", "serdes")
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text().splitlines()
        if line.strip().startswith(("import ", "from ")) and {"pickle", "cloudpickle", "dill"} & set(line.split())
    ]
    assert found == []
