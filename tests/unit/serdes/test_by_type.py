"""What types stand for where a serde is expected."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Protocol, TypedDict, TypeVar, runtime_checkable
from uuid import UUID

import msgspec
import pydantic
import pytest

from pykstreams.core.errors import ConfigError, SerdeError
from pykstreams.core.windows import Windowed
from pykstreams.serdes import (
    ChangeSerde,
    CombinedKey,
    CombinedKeySerde,
    JsonSerde,
    OptionalSerde,
    Serdes,
    SessionWindowedSerde,
    SubscriptionResponseWrapperSerde,
    SubscriptionWrapperSerde,
    TimeWindowedSerde,
)
from pykstreams.serdes.base import CompiledSerde
from pykstreams.serdes.by_type import TypeSerdes, rules_out_none, type_name
from pykstreams.serdes.told_topic import ToldTopic
from pykstreams.types import Avro, Float32, Int16, Int32

T = TypeVar("T")
OrderId = NewType("OrderId", str)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST, HALF_EAST = timezone(timedelta(hours=1)), timezone(timedelta(minutes=30))
WEST, FAR_WEST = timezone(timedelta(hours=-1)), timezone(timedelta(hours=-1, minutes=-30))


class Color(Enum):
    RED = "red"


class Point(TypedDict):
    x: float


@dataclass(frozen=True)
class Order:
    id: int
    price: Decimal


class Customer(pydantic.BaseModel):
    name: str


class Product(msgspec.Struct):
    name: str


class Bill(pydantic.BaseModel, frozen=True):
    """A pydantic model with whatever may be equal and look different."""

    at: datetime
    closes: time | None = None
    total: Decimal = Decimal(0)
    rate: float = 1.0
    lines: tuple[Order, ...] = ()
    named: dict[str, Decimal] = {}
    tags: frozenset[Decimal] = frozenset()


class Short(msgspec.Struct, frozen=True, omit_defaults=True):
    """A struct that leaves out what is as it is anyway, by which object it is."""

    id: int
    price: Decimal = Decimal("1.50")


class Batch(msgspec.Struct, frozen=True):
    """A struct with the same."""

    at: datetime
    closes: time | None = None
    total: Decimal = Decimal(0)
    rate: float = 1.0
    lines: tuple[Order, ...] = ()
    product: Short | None = None
    tags: frozenset[Decimal] = frozenset()
    pair: tuple[float, int] = (1.0, 1)


@dataclass(frozen=True)
class Shop:
    """Models inside of a dataclass, and a time."""

    opens: time
    batch: Batch
    anything: object = None


class Unknown:
    """Nothing can be said of its bytes."""


@pytest.fixture
def types() -> Iterator[TypeSerdes]:
    yield TypeSerdes()


@pytest.mark.parametrize(
    ("type_", "value", "raw"),
    [
        (str, "a", b"a"),
        (bytes, b"\x00", b"\x00"),
        (int, 1, b"\0\0\0\0\0\0\0\x01"),
        (float, 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        (bool, True, b"\x01"),
        (UUID, UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
        (datetime, datetime(2026, 1, 2, 3, tzinfo=UTC), b"2026-01-02T03:00:00+00:00"),
        (date, date(2026, 1, 2), b"2026-01-02"),
        (Decimal, Decimal("1.50"), b"1.50"),
        (Int16, 1, b"\0\x01"),
        (Int32, 1, b"\0\0\0\x01"),
        (Float32, 1.0, b"\x3f\x80\0\0"),
        (Annotated[int, Int32], 1, b"\0\0\0\x01"),
        (Annotated[str, "a note"], "a", b"a"),
        (Annotated[dict[str, int], Avro('{"type": "map", "values": "long"}')], {}, b"\x00"),
        (OrderId, "a", b"a"),
        (str | None, "a", b"a"),
        (list[int], [1, 2], b"[1,2]"),
        (tuple[int, str], (1, "a"), b'[1,"a"]'),
        (dict[str, int], {"b": 1, "a": 2}, b'{"b":1,"a":2}'),
        (dict, {"a": None}, b'{"a":null}'),
        (int | str, "a", b'"a"'),
        (Literal["a", "b"], "a", b'"a"'),
        (Color, Color.RED, b'"red"'),
        (Point, {"x": 1.5}, b'{"x":1.5}'),
        (Order, Order(1, Decimal("1.50")), b'{"id":1,"price":"1.50"}'),
        (Customer, Customer(name="Ann"), b'{"name":"Ann"}'),
        (Product, Product("Tea"), b'{"name":"Tea"}'),
        (CombinedKey[str, int], CombinedKey("a", 1), b"\0\0\0\x01a\0\0\0\0\0\0\0\x01"),
    ],
)
def test_values_of_a_type_are_written_and_read(types: TypeSerdes, type_: Any, value: object, raw: bytes) -> None:
    serde = types.serde(type_)

    assert serde.serializer.serialize("topic", value) == raw
    assert serde.deserializer.deserialize("topic", raw) == value
    assert serde.serializer.serialize("topic", None) is None


@pytest.mark.parametrize(
    ("type_", "equal", "raw"),
    [
        (dict[str, float], ({"b": 1.0, "a": 2.0}, {"a": 2, "b": 1}), b'{"a":2.0,"b":1.0}'),
        (Order, (Order(1, Decimal("1.5")), Order(True, Decimal("1.50"))), b'{"id":1,"price":"1.5"}'),
        (Decimal, (Decimal("100"), Decimal("1E+2"), Decimal("100.00")), b"1E+2"),
        (Decimal, (Decimal("0"), Decimal("-0.00")), b"0"),
        (
            datetime,
            (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
            b"2026-01-01T00:00:00+00:00",
        ),
        (list[float], ([0.0], [-0.0]), b"[0.0]"),
        (Customer, (Customer(name="Ann"),), b'{"name":"Ann"}'),
        (Point, ({"x": 1}, {"x": 1.0}), b'{"x":1.0}'),
        (time, (time(12, tzinfo=UTC), time(13, tzinfo=EAST)), b"12:00:00+00:00"),
        (time, (time(12, 0, 0, 5), time(12, 0, 0, 5, fold=1)), b"12:00:00.000005"),
        (time, (time(0, tzinfo=HALF_EAST), time(0, 30, tzinfo=EAST)), b"00:00:00+00:30"),
        (time, (time(23, 59, 59, tzinfo=WEST), time(23, 29, 59, tzinfo=FAR_WEST)), b"23:59:59-01:00"),
        (
            Bill,
            (
                Bill(
                    at=NOON, closes=time(12, tzinfo=UTC), total=Decimal(100), tags=frozenset([Decimal(0), Decimal(8)])
                ),
                Bill(
                    at=NOON.astimezone(EAST),
                    closes=time(13, tzinfo=EAST),
                    total=Decimal("1E+2"),
                    tags=frozenset([Decimal("8.0"), Decimal("0.0")]),
                ),
            ),
            b'{"at":"2026-01-01T12:00:00Z","closes":"12:00:00Z","lines":[],"named":{},"rate":1.0,"tags":["0","8"],'
            b'"total":"100"}',
        ),
        (
            Bill,
            (
                Bill(at=NOON, lines=(Order(1, Decimal("1.5")),), named={"a": Decimal("0.5")}, rate=0.0),
                Bill(at=NOON, lines=(Order(1, Decimal("1.50")),), named={"a": Decimal("0.50")}, rate=-0.0),
            ),
            b'{"at":"2026-01-01T12:00:00Z","closes":null,"lines":[{"id":1,"price":"1.5"}],"named":{"a":"0.5"},'
            b'"rate":0.0,"tags":[],"total":"0"}',
        ),
        (
            Batch,
            (
                Batch(NOON, time(12, tzinfo=UTC), Decimal(100), 1.0, (Order(1, Decimal("1.5")),), Short(1, Decimal(5))),
                Batch(
                    NOON.astimezone(EAST),
                    time(13, tzinfo=EAST),
                    Decimal("100.0"),
                    1,
                    (Order(1, Decimal("1.50")),),
                    Short(1, Decimal("5.00")),
                ),
            ),
            b'{"at":"2026-01-01T12:00:00Z","closes":"12:00:00Z","lines":[{"id":1,"price":"1.5"}],'
            b'"pair":[1.0,1],"product":{"id":1,"price":"5"},"rate":1.0,"tags":[],"total":"100"}',
        ),
        (
            Batch,
            (
                Batch(NOON, tags=frozenset([Decimal(0), Decimal(8)])),
                Batch(NOON, tags=frozenset([Decimal("8.0"), Decimal("0.0")]), pair=(1, True)),
            ),
            b'{"at":"2026-01-01T12:00:00Z","closes":null,"lines":[],"pair":[1.0,1],"product":null,"rate":1.0,'
            b'"tags":["0","8"],"total":"0"}',
        ),
        (Short, (Short(1), Short(1, Decimal("1.5")), Short(1, Decimal("1.500"))), b'{"id":1}'),
        (
            Shop,
            (
                Shop(time(12, tzinfo=UTC), Batch(NOON)),
                Shop(time(13, tzinfo=EAST), Batch(NOON.astimezone(EAST), total=Decimal("0.0"), rate=1)),
            ),
            b'{"anything":null,"batch":{"at":"2026-01-01T12:00:00Z","closes":null,"lines":[],"pair":[1.0,1],"product":null,'
            b'"rate":1.0,"tags":[],"total":"0"},"opens":"12:00:00+00:00"}',
        ),
    ],
)
def test_equal_keys_have_equal_bytes(types: TypeSerdes, type_: Any, equal: tuple[object, ...], raw: bytes) -> None:
    serde = types.serde(type_, is_key=True)

    assert {serde.serializer.serialize("topic", value) for value in equal} == {raw}
    assert serde.deserializer.deserialize("topic", raw) == equal[0]


def test_decimal_keys_of_many_digits_stay_apart(types: TypeSerdes) -> None:
    serde = types.serde(Decimal, is_key=True)
    keys = [Decimal("1." + "0" * 40 + digit) for digit in "123"]

    assert len({serde.serializer.serialize("topic", key) for key in keys}) == 3


def test_a_key_that_is_not_equal_to_itself_is_refused(types: TypeSerdes) -> None:
    with pytest.raises(SerdeError, match="a key must be equal to itself, which NaN is not"):
        types.serde(Decimal, is_key=True).serializer.serialize("topic", Decimal("NaN"))


@pytest.mark.parametrize("type_", [datetime, tuple[datetime], Bill])
def test_a_time_that_is_out_of_range_in_utc_is_refused_as_a_key(types: TypeSerdes, type_: Any) -> None:
    first = datetime(1, 1, 1, tzinfo=EAST)
    key = first if type_ is datetime else Bill(at=first) if type_ is Bill else (first,)

    with pytest.raises(SerdeError, match="the year of this time in UTC is out of range"):
        types.serde(type_, is_key=True).serializer.serialize("topic", key)


def test_keys_of_a_model_are_not_changed(types: TypeSerdes) -> None:
    bill = Bill(at=NOON.astimezone(EAST), total=Decimal("2.50"))
    batch = Batch(NOON.astimezone(EAST), total=Decimal("2.50"), product=Short(1, Decimal("2.50")))
    before = repr((bill, batch))
    for key in (bill, batch):
        types.serde(type(key), is_key=True).serializer.serialize("topic", key)

    assert repr((bill, batch)) == before


@pytest.mark.parametrize("is_key", [False, True])
def test_a_value_of_another_type_is_refused(types: TypeSerdes, is_key: bool) -> None:
    with pytest.raises(SerdeError, match="cannot write 'a' of type str for topic 'topic': expected Order"):
        types.serde(Order, is_key=is_key).serializer.serialize("topic", "a")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        (Unknown, r"no serde for Unknown; register one, types.register\(Unknown, serde\), or give a serde"),
        (object, "no serde for object, which may be anything"),
        (Any, "which may be anything"),
        (T, "no serde for T, which may be anything"),
        (Windowed[str], "does not tell how long its windows are"),
        (list[Unknown], "Unknown"),
    ],
)
def test_a_type_without_serde_is_refused_with_the_cure(types: TypeSerdes, type_: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        types.serde(type_)


@pytest.mark.parametrize(("type_", "inner"), [(Windowed[str], "str"), (Windowed[Order], "Order")])
def test_keys_in_windows_are_told_the_serdes_that_they_have(types: TypeSerdes, type_: Any, inner: str) -> None:
    with pytest.raises(TypeError) as raised:
        types.serde(type_, is_key=True)

    assert str(raised.value) == (
        f"there is no serde for {type_name(type_)}, since a type does not tell how long its windows are; leave it out "
        f"where a table in windows is written, whose keys have theirs, or give WindowedSerdes.time_windowed({inner}, "
        f"size), with the size of the windows, or WindowedSerdes.session_windowed({inner})"
    )


def test_windowed_without_the_type_of_its_keys_is_told_the_same(types: TypeSerdes) -> None:
    with pytest.raises(TypeError, match=r"no serde for Windowed, since .*[.]time_windowed\(type of the keys, size\)"):
        types.serde(Windowed)


def test_type_in_place_of_the_inner_serde_is_told_how_to_write_it() -> None:
    text: Any = str
    for make in (lambda: TimeWindowedSerde(text, 5), lambda: SessionWindowedSerde(text)):
        with pytest.raises(
            TypeError, match=r"inner is <class 'str'>; expected a serde: Serdes.for_type\(str, is_key=True\)"
        ):
            make()


def test_a_registered_serde_counts_wherever_the_type_stands(types: TypeSerdes) -> None:
    serde = Serdes.from_functions(lambda value: b"?", lambda raw: Unknown())
    types.register(Unknown, serde)

    assert types.serde(Unknown) is serde
    assert types.serde(Unknown, is_key=True) is serde
    assert types.serde(Annotated[Unknown, "a note"]) is serde  # type: ignore[arg-type]
    assert types.serde(CombinedKey[Unknown, str], is_key=True).prefix is serde  # type: ignore[attr-defined]


def test_serde_of_a_type_becomes_that_of_keys_and_one_that_a_user_made_stays(types: TypeSerdes) -> None:
    by_user: JsonSerde[Order] = JsonSerde(Order)

    assert types.for_keys(types.serde(Order)) is types.serde(Order, is_key=True)
    assert types.for_keys(types.serde(str)) is types.serde(str)
    assert types.for_keys(by_user) is by_user

    types.register(Order, by_user)

    assert types.for_keys(by_user) is by_user


def test_the_last_serde_registered_counts(types: TypeSerdes) -> None:
    before = types.serde(CombinedKey[int, int])
    types.register(int, Serdes.integer())

    assert before.serializer.serialize("topic", CombinedKey(1, 1)) == b"\0\0\0\x08" + b"\0\0\0\0\0\0\0\x01" * 2
    after = types.serde(CombinedKey[int, int])
    assert after.serializer.serialize("topic", CombinedKey(1, 1)) == b"\0\0\0\x04" + b"\0\0\0\x01" * 2


def test_what_is_no_serde_cannot_be_registered(types: TypeSerdes) -> None:
    with pytest.raises(ConfigError, match="expected an object with the attributes serializer and deserializer"):
        types.register(int, 5)  # type: ignore[arg-type]


def test_serdes_of_types_are_told_from_those_that_were_given(types: TypeSerdes) -> None:
    made = types.serde(str)

    assert types.is_made_of_types(made)
    assert types.is_made_of_types(TimeWindowedSerde(made, 5))
    assert not types.is_made_of_types(Serdes.string())
    assert not types.is_made_of_types(TimeWindowedSerde(Serdes.string(), 5))


def test_serdes_around_others_are_named_by_the_types_inside(types: TypeSerdes) -> None:
    text, order = types.serde(str), types.serde(Order)
    named = {
        ToldTopic(text, "left", "-pk"): "str",
        OptionalSerde(text): "str | None",
        SubscriptionWrapperSerde(ToldTopic(text, "left")): "SubscriptionWrapper[str]",
        SubscriptionResponseWrapperSerde(order): "SubscriptionResponseWrapper[Order]",
        CombinedKeySerde(ToldTopic(text), OptionalSerde(Serdes.long())): "CombinedKey[str, int | None]",
        ChangeSerde(order): "Change[Order]",
        Serdes.list(text): "list[str]",
        TimeWindowedSerde(CombinedKeySerde(text, text), 5): "Windowed[CombinedKey[str, str]]",
    }

    assert [types.name_of(serde) for serde in named] == list(named.values())


def test_serdes_of_users_are_named_as_they_are_made(types: TypeSerdes) -> None:
    @dataclass(frozen=True)
    class BoxSerde(CompiledSerde[str]):
        inner: Any

        def encoder(self, topic: str) -> Any: ...

        def decoder(self, topic: str) -> Any: ...

    assert types.name_of(BoxSerde(Serdes.long())).endswith("BoxSerde(inner=LongSerde())")


class Sized(Protocol):
    size: int


@runtime_checkable
class Closing(Protocol):
    def close(self) -> None: ...


class Total(TypedDict):
    cents: int


@pytest.mark.parametrize(
    ("type_", "ruled_out"),
    [
        (int, True),
        (int | str, True),
        (list[int], True),
        (Sequence[int], True),
        (Total, True),
        (Literal["a", "b"], True),
        (Annotated[int, "cents"], True),
        (NewType("Cents", int), True),
        (Closing, True),
        (None, False),
        (int | None, False),
        (Annotated[int | None, "cents"], False),
        (Literal["a", None], False),
        (Hashable, False),
        (Sized, False),
        (object, False),
        (Any, False),
        (TypeVar("T"), False),
    ],
)
def test_types_that_have_no_none_among_their_values_are_known(type_: Any, ruled_out: bool) -> None:
    assert rules_out_none(type_) is ruled_out
