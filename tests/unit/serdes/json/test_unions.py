"""Unions in JSON: which member is read, and which unions are refused since nobody could tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from pykstreams import StreamsBuilder
from pykstreams.core.errors import SerdeError
from pykstreams.serdes import AvroSerde, JsonSerde
from pykstreams.serdes.json.json_keys import JsonKeySerde
from pykstreams.testing import TopologyTestDriver


@dataclass(frozen=True)
class Created:
    id: int


@dataclass(frozen=True)
class Paid:
    id: int
    cents: int


@dataclass
class Sent:
    id: int
    weight: float = 0.0


@dataclass
class Same:
    id: int


@dataclass
class Lost:
    kind: Literal["lost"] = "lost"
    id: int = 0


@dataclass
class Found:
    kind: Literal["found", "seen"] = "found"
    id: int = 0


@dataclass
class Numbered:
    of: int


@dataclass
class Named:
    of: str


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Size(Enum):
    SMALL = "small"


@dataclass
class Painted:
    paint: Literal[Color.RED]


@dataclass
class Bleached:
    paint: Literal[Color.BLUE]


class Place(TypedDict):
    city: str
    since: datetime


class Visit(TypedDict):
    city: str
    day: date
    guest: Paid


class Anywhere(TypedDict):
    city: str


class Nowhere(TypedDict):
    city: str


class Customer(pydantic.BaseModel):
    name: str
    since: datetime | None = None


class Supplier(pydantic.BaseModel):
    name: str
    town: str = pydantic.Field(alias="city")


class Guest(pydantic.BaseModel, extra="allow"):
    name: str


class Cat(pydantic.BaseModel):
    pet: Literal["cat"] = "cat"


class Dog(pydantic.BaseModel):
    pet: Literal["dog"] = "dog"


class Get(msgspec.Struct, tag=True):
    key: str


class Put(msgspec.Struct, tag=True):
    key: str
    value: str = ""


class Plain(msgspec.Struct):
    key: str


class Short(msgspec.Struct, omit_defaults=True):
    key: str
    value: str = ""


@dataclass
class Basket:
    events: list[Created | Paid]
    last: Created | Paid | None = None
    by_name: dict[str, Created | Paid] = field(default_factory=dict)
    owner: Customer | None = None
    pet: Cat | Dog | None = None


EVENT: Any = Created | Paid
THING: Any = Lost | Found
ALIKE: Any = Created | Same

Event = NewType("Event", Paid)

READ: list[tuple[Any, Any]] = [
    (Created | Paid, Paid(1, 500)),
    (Paid | Created, Paid(1, 500)),
    (Paid | Created, Created(1)),
    (Created | Paid | None, Paid(1, 500)),
    (Created | Annotated[Event, "a note"], Paid(1, 500)),
    (list[Created | Paid], [Paid(1, 500), Created(2)]),
    (list[Created] | list[Paid], [Paid(1, 500)]),
    (list[Created | None] | list[Paid | None], [None, Paid(1, 500)]),
    (dict[str, Created] | dict[str, Paid], {"a": Paid(1, 500)}),
    (tuple[Created] | tuple[Paid], (Paid(1, 500),)),
    (tuple[int] | tuple[int, int], (1, 2)),
    (list[int] | tuple[int, str], (1, "a")),
    (tuple[Created | Paid, ...], (Paid(1, 500), Created(2))),
    (Lost | Found, Found()),
    (Lost | Found, Found("seen", 5)),
    (Lost | Found | Paid, Paid(1, 5)),
    (Painted | Bleached, Bleached(Color.BLUE)),
    (Numbered | Named, Named("a")),
    (Created | Place, {"city": "Bonn", "since": datetime(2026, 1, 1, tzinfo=UTC)}),
    (Place | Visit, {"city": "Bonn", "day": date(2026, 1, 1), "guest": Paid(1, 5)}),
    (Anywhere | Nowhere, {"city": "Bonn"}),
    (Customer | Supplier, Supplier(name="Ann", city="Bonn")),
    (Supplier | Customer, Customer(name="Ann", since=datetime(2026, 1, 1, tzinfo=UTC))),
    (Cat | Dog, Dog()),
    (Annotated[Cat | Dog, pydantic.Field(discriminator="pet")], Dog()),
    (Get | Put, Put("a")),
    (Put | Get, Get("a")),
    (list[Customer | Paid], [Paid(1, 5), Customer(name="Ann")]),
    (Plain | Paid | Customer, Plain("a")),
    (float | int, 2**60 + 1),
    (int | float, 1.0),
    (Decimal | int, 5),
    (int | Decimal, Decimal("1.50")),
    (datetime | date, date(2026, 1, 2)),
    (date | datetime | UUID, datetime(2026, 1, 2)),
    (date | datetime | UUID, UUID(int=5)),
    (Color | Size, Size.SMALL),
    (Literal["a"] | str, "a"),
    (Literal[Color.RED], Color.RED),
    (int | str | None | list[int], [1]),
    (Basket, Basket([Paid(1, 5), Created(1)], Paid(1, 5), {"a": Paid(1, 5)}, Customer(name="Ann"), Dog())),
]


@pytest.mark.parametrize(("type_", "value"), READ, ids=str)
@pytest.mark.parametrize("serde", [JsonSerde, JsonKeySerde])
def test_of_a_union_the_member_is_read_that_was_written(serde: Any, type_: Any, value: Any) -> None:
    made = serde(type_)
    read = made.deserialize("topic", made.serialize("topic", value))

    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("type_", "first", "second", "why"),
    [
        (Created | Same, "Created", "Same", "an object with the field id may be either"),
        (Lost | Same, "Lost", "Same", "an object with the field id may be either"),
        (Created | Sent, "Created", "Sent", "an object with the field id may be either"),
        (list[Created | Same], "Created", "Same", "an object with the field id may be either"),
        (list[Created] | list[Same], r"list\[Created\]", r"list\[Same\]", ""),
        (Created | dict[str, int], "Created", r"dict\[str, int\]", ""),
        (Customer | Guest, "Customer", "Guest", "an object with the field name may be either"),
        (Plain | Short, "Plain", "Short", "an object with the field key may be either"),
        (str | datetime, "str", "datetime", ""),
        (str | UUID, "str", "UUID", ""),
        (Color | str, "Color", "str", ""),
        (list[int] | tuple[int, ...], r"list\[int\]", r"tuple\[int, \.\.\.\]", ""),
    ],
    ids=str,
)
@pytest.mark.parametrize("serde", [JsonSerde, JsonKeySerde])
def test_members_that_nobody_could_tell_apart_are_refused_with_the_cure(
    serde: Any, type_: Any, first: str, second: str, why: str
) -> None:
    with pytest.raises(
        TypeError, match=rf"{first} and {second} cannot be told apart.*{why}.*types\.register"
    ) as refused:
        serde(type_)

    assert ("Literal" in str(refused.value)) is bool(why)


def test_such_a_union_in_a_field_is_named_with_it() -> None:
    @dataclass
    class Batch:
        events: list[Paid | Same | Created]

    with pytest.raises(TypeError, match=r"^field Batch.events: Same and Created cannot be told apart"):
        JsonSerde(Batch)


def test_such_a_union_is_refused_when_the_topology_is_built() -> None:
    with pytest.raises(TypeError, match="Created and Same cannot be told apart"):
        StreamsBuilder().stream("in", str, ALIKE)


def test_a_union_keeps_its_data_on_the_way_through_a_topic() -> None:
    builder = StreamsBuilder()
    builder.stream("in", str, EVENT).repartition().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", str, EVENT).pipe_input("a", Paid(1, 500))
        read = driver.create_output_topic("out", str, EVENT).read_value()

    assert read == Paid(1, 500)


@pytest.mark.parametrize(
    ("type_", "text", "why"),
    [
        (Created | Paid, '{"id":1,"cents":2,"new":3}', r"no member of Created \| Paid has the fields cents, id, new"),
        (Created | Paid, "{}", r"no member of Created \| Paid has no fields"),
        (Created | Paid, '{"id":1,"cents":"2"}', "cents: expected int, got '2'"),
        (Created | Paid, "[]", r"expected Created \| Paid, got \[\]"),
        (Lost | Found, '{"id":1}', r"Lost and Found have the fields id"),
        (Lost | Found, '{"kind":"gone"}', r"no member of Lost \| Found has the fields kind"),
        (Lost | Found, '{"kind":["lost"]}', r"no member of Lost \| Found has the fields kind"),
        (Lost | Found, '{"kind":"lost","id":"x"}', "id: expected int, got 'x'"),
        (Customer | Paid, '{"name":1}', "name"),
        (Plain | Paid, '{"key":1}', "Expected `str`"),
    ],
)
def test_an_object_that_is_of_no_member_or_of_several_is_refused(type_: Any, text: str, why: str) -> None:
    with pytest.raises(SerdeError, match=why):
        JsonSerde(type_).deserialize("topic", text.encode())


def test_fields_that_are_new_are_ignored_where_a_literal_or_nothing_else_decides() -> None:
    assert JsonSerde(THING).deserialize("t", b'{"kind":"seen","id":2,"new":1}') == Found("seen", 2)
    for type_ in (Created | None, Created | str):
        serde: Any = JsonSerde[Any](type_)  # type: ignore[arg-type]
        assert serde.deserialize("t", b'{"id":2,"new":1}') == Created(2)


def test_records_of_avro_in_a_union_are_told_apart_too() -> None:
    def record(name: str, *fields: str) -> dict[str, object]:
        return {"type": "record", "name": name, "fields": [{"name": one, "type": "long"} for one in fields]}

    serde = AvroSerde([record("Created", "id"), record("Paid", "id", "cents")], type_=EVENT)

    assert serde.deserialize("t", serde.serialize("t", Paid(1, 500))) == Paid(1, 500)
    with pytest.raises(TypeError, match="Created and Same cannot be told apart"):
        AvroSerde([record("Created", "id"), record("Same", "id")], type_=ALIKE)
