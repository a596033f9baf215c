"""A foreign key whose annotated type the keys of the other table cannot have is refused when the join is made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, NewType
from uuid import UUID

import pytest

from pykstreams import GlobalKTable, Joined, KStream, KTable, Serdes, StreamsBuilder
from pykstreams.core.errors import TopologyError
from pykstreams.serdes import CombinedKey

Join = Callable[[StreamsBuilder, Callable[..., Any], Any], object]
Number = NewType("Number", int)


def rows(builder: StreamsBuilder) -> KTable[str, str]:
    return builder.table("orders", str, str)


def referred(builder: StreamsBuilder, key: Any) -> KTable[Any, str]:
    return builder.table("customers", key, str)


def both(order: Any, customer: Any) -> str:
    return f"{order} {customer}"


def inner(builder: StreamsBuilder, extractor: Callable[..., Any], key: Any) -> object:
    return rows(builder).join(referred(builder, key), both, foreign_key_extractor=extractor)


def left(builder: StreamsBuilder, extractor: Callable[..., Any], key: Any) -> object:
    return rows(builder).left_join(referred(builder, key), both, foreign_key_extractor=extractor)


def outer(builder: StreamsBuilder, extractor: Callable[..., Any], key: Any) -> object:
    return rows(builder).outer_join(referred(builder, key), both, foreign_key_extractor=extractor)


def one_to_many(builder: StreamsBuilder, extractor: Callable[..., Any], key: Any) -> object:
    return referred(builder, key).one_to_many_join(rows(builder), both, key_extractor=extractor)


def of_stream(builder: StreamsBuilder, extractor: Callable[..., Any], key: Any) -> object:
    stream: KStream[str, str] = builder.stream("orders", str, str)
    return stream.join(referred(builder, key), both, key_selector=with_key(extractor))


def with_key(extractor: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(extractor)
    def select(key: Any, value: Any) -> Any:
        return extractor(value)

    return select


def number(order: str) -> int:
    return int(order)


@pytest.mark.parametrize("join", [inner, left, outer, one_to_many, of_stream])
def test_number_for_keys_of_text_is_refused_with_both_names(join: Join) -> None:
    with pytest.raises(TopologyError) as raised:
        join(StreamsBuilder(), number, str)

    text = str(raised.value)
    assert "number (" in text
    assert "is annotated to return int as foreign key" in text
    assert "keys of KTABLE-SOURCE-" in text
    assert "are str" in text


def test_numbers_for_keys_of_text_are_refused() -> None:
    def numbers(order: str) -> list[int]:
        return [int(order)]

    with pytest.raises(TopologyError, match="annotated to return int"):
        rows(builder := StreamsBuilder()).join(referred(builder, str), both, foreign_keys_extractor=numbers)


def test_extractor_with_key_and_one_in_a_class_are_read_too() -> None:
    class Extractor:
        def __call__(self, key: str, order: str) -> int | None:
            return None

    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="annotated to return int"):
        rows(builder).join(referred(builder, str), both, foreign_key_extractor=Extractor(), extractor_with_key=True)


def returns(type_: Any) -> Callable[[str], Any]:
    def extract(order: str) -> Any:
        return order

    extract.__annotations__["return"] = type_
    return extract


@pytest.mark.parametrize(
    ("type_", "key"),
    [
        (int, Serdes.string()),
        (str, int),
        (str, UUID),
        (UUID, str),
        (str, bytes),
        (Number, str),
        (Annotated[int, "number"], str),
        (int | None, str),
        (int | float, str),
        (str, date),
        (date, int),
    ],
)
def test_types_that_no_value_has_both_of_are_refused(type_: Any, key: Any) -> None:
    with pytest.raises(TopologyError, match="foreign"):
        inner(StreamsBuilder(), returns(type_), key)


@pytest.mark.parametrize(
    ("type_", "key"),
    [
        (str, str),
        (int, float),  # whole numbers are written as floats
        (float, int),  # a function of float may return 1
        (int, bool),  # or True
        (int | str, str),
        (Any, str),
        (object, str),
        (None, str),
        (datetime, datetime),
        (date, datetime),  # a datetime is a date
        (str, Serdes.from_functions(lambda value: str(value).encode(), lambda raw: raw.decode())),
        (int, Serdes.from_functions(lambda value: str(value).encode(), lambda raw: raw.decode())),
        (CombinedKey[str, str], str),
        ("Missing", str),
    ],
)
def test_types_that_may_meet_or_are_not_known_are_taken(type_: Any, key: Any) -> None:
    inner(StreamsBuilder(), returns(type_), key)


def test_default_serde_is_not_known_when_a_join_is_made() -> None:
    builder = StreamsBuilder()
    customers: KTable[Any, str] = builder.table("customers")

    rows(builder).join(customers, both, foreign_key_extractor=number)


def test_serde_of_the_join_counts_where_it_is_given() -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("orders", str, str)
    joined: Joined[Any, Any, Any] = Joined(key_serde=int)

    stream.join(referred(builder, int), both, key_selector=with_key(number), joined=joined)


@dataclass(frozen=True)
class CustomerId:
    name: str


@dataclass(frozen=True)
class OrderId:
    number: int


@pytest.mark.parametrize(
    ("type_", "key"),
    [(CustomerId, str), (str, CustomerId), (OrderId, CustomerId), (CustomerId | None, int), (list[str], str)],
)
@pytest.mark.parametrize("join", [inner, left, outer, one_to_many, of_stream])
def test_keys_of_other_classes_are_warned_of(join: Join, type_: Any, key: Any) -> None:
    builder = StreamsBuilder()
    extract: Callable[..., Any] = keyed(returns(type_)) if join is of_stream else returns(type_)
    if join is of_stream:
        stream: KStream[str, str] = builder.stream("orders", str, str)
        stream.join(referred(builder, key), both, key_selector=extract)
    else:
        join(builder, extract, key)

    (text,) = map(str, builder.build().contradictions)
    assert "is annotated to return" in text
    assert ": no row would be found; let it return" in text


def keyed(extractor: Callable[[str], Any]) -> Callable[[str, str], Any]:
    def select(key: str, order: str) -> Any:
        return extractor(order)

    select.__annotations__["return"] = extractor.__annotations__["return"]
    return select


def of_global_table(builder: StreamsBuilder, type_: Any, key: Any, *, left_outer: bool) -> None:
    stream: KStream[str, str] = builder.stream("orders", str, str)
    customers: GlobalKTable[Any, str] = builder.global_table("customers", key, str)
    join = stream.left_join if left_outer else stream.join
    join(customers, both, key_selector=keyed(returns(type_)))


@pytest.mark.parametrize("left_outer", [False, True])
@pytest.mark.parametrize(("type_", "key"), [(int, str), (str, UUID), (str, CustomerId), (CustomerId, str)])
def test_keys_that_a_global_table_cannot_have_are_warned_of(type_: Any, key: Any, left_outer: bool) -> None:
    builder = StreamsBuilder()
    of_global_table(builder, type_, key, left_outer=left_outer)

    (text,) = map(str, builder.build().contradictions)
    assert "select (" in text
    assert "as key of the global table, and keys of KTABLE-SOURCE-" in text


@pytest.mark.parametrize(
    ("type_", "key"), [(str, str), (int, float), (Any, str), (str | int, str), (CustomerId, CustomerId), (Number, int)]
)
def test_keys_that_a_global_table_may_have_are_taken(type_: Any, key: Any) -> None:
    builder = StreamsBuilder()
    of_global_table(builder, type_, key, left_outer=False)

    assert builder.build().contradictions == ()
