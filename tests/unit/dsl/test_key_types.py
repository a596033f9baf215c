"""Keys of types that no value has both of never meet: refused where they are to be joined, or aggregated together."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import IntEnum, StrEnum
from typing import Any, Literal, cast
from uuid import UUID

import pytest

from pykstreams import JoinWindows, KStream, KTable, Materialized, Serdes, StreamJoined, StreamsBuilder, TimeWindows
from pykstreams.errors import ConfigError, TopologyError
from pykstreams.serdes import JsonSerde, Serde
from pykstreams.testing import TopologyTestDriver
from pykstreams.types import Float32, Int32

Join = Callable[[StreamsBuilder, Any, Any], object]


@dataclass(frozen=True)
class CustomerId:
    name: str


@dataclass(frozen=True)
class OrderId:
    number: int


class Currency(StrEnum):
    EUR = "EUR"


class Level(IntEnum):
    LOW = 1


def both(one: Any, other: Any) -> str:
    return f"{one}+{other}"


def add(key: Any, value: str, total: str) -> str:
    return total + value


def stream_with_table(builder: StreamsBuilder, one: Any, other: Any) -> object:
    return builder.stream("a", one, str).join(builder.table("b", other, str), both)


def stream_with_table_left(builder: StreamsBuilder, one: Any, other: Any) -> object:
    return builder.stream("a", one, str).left_join(builder.table("b", other, str), both)


def streams(builder: StreamsBuilder, one: Any, other: Any) -> object:
    return builder.stream("a", one, str).join(builder.stream("b", other, str), both, windows=JoinWindows(5))


def streams_outer(builder: StreamsBuilder, one: Any, other: Any) -> object:
    return builder.stream("a", one, str).outer_join(builder.stream("b", other, str), both, windows=JoinWindows(5))


def tables(builder: StreamsBuilder, one: Any, other: Any) -> object:
    return builder.table("a", one, str).join(builder.table("b", other, str), both)


def tables_outer(builder: StreamsBuilder, one: Any, other: Any) -> object:
    return builder.table("a", one, str).outer_join(builder.table("b", other, str), both)


def warned_of(join: Join, one: Any, other: Any) -> str:
    """The one thing that is said of a join."""
    builder = StreamsBuilder()
    join(builder, one, other)

    (text,) = map(str, builder.build().contradictions)
    return text


JOINS = [stream_with_table, stream_with_table_left, streams, streams_outer, tables, tables_outer]


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(
    ("one", "other"), [(str, int), (int, str), (UUID, str), (str, date), (bytes, str), (str, Serdes.long())]
)
def test_join_of_unlike_keys_is_refused_with_both_sides_and_the_cure(join: Join, one: Any, other: Any) -> None:
    with pytest.raises(TopologyError) as raised:
        join(StreamsBuilder(), one, other)

    text = str(raised.value)
    assert "join of K" in text
    assert text.count(" (keys of ") == 2
    assert "select_key" in text


def test_both_types_are_named() -> None:
    with pytest.raises(
        TopologyError,
        match=r"join of KSTREAM-SOURCE-\d+ \(keys of str\) with KTABLE-SOURCE-\d+ \(keys of int\): .* select_key",
    ):
        stream_with_table(StreamsBuilder(), str, int)


def test_keys_that_a_step_has_selected_are_compared() -> None:
    def by_length(key: str, value: str) -> int:
        return len(value)

    builder = StreamsBuilder()
    table: Any = builder.table("b", str, str)
    with pytest.raises(TopologyError, match=r"KSTREAM-KEY-SELECT-\d+ \(keys of int\) with .* \(keys of str\)"):
        builder.stream("a", str, str).select_key(by_length).join(table, both)


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(
    ("one", "other"), [(CustomerId, OrderId), (JsonSerde(CustomerId), OrderId), (CustomerId, dict[str, str])]
)
def test_keys_of_other_classes_are_warned_of(join: Join, one: Any, other: Any) -> None:
    """JSON of two classes may be the same, so that a program is right nevertheless."""
    text = warned_of(join, one, other)

    assert "(keys of" in text
    assert "select_key" in text


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (str, str),
        (int, int),
        (Int32, Serdes.integer()),
        (Currency, Literal["EUR"]),
        (str, JsonSerde()),
        (str, Serdes.from_functions(lambda value: str(value).encode(), lambda raw: raw.decode())),
        (CustomerId, CustomerId),
    ],
)
def test_keys_that_may_meet_are_joined(join: Join, one: Any, other: Any) -> None:
    builder = StreamsBuilder()
    join(builder, one, other)

    assert builder.build().contradictions == ()


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (int, Int32),
        (Serdes.integer(), int),
        (int, float),
        (float, Float32),
        (str, Currency),
        (Literal["EUR"], str),
        (str, str | int),
        (Serdes.string(), JsonSerde(Currency)),
        (int, Level),
        (date, date | int),
    ],
)
def test_equal_keys_of_other_bytes_are_warned_of(join: Join, one: Any, other: Any) -> None:
    """They meet where topics have one partition only, so that a program may be right."""
    text = warned_of(join, one, other)

    assert "equal keys have other bytes on each side, so that they lie in different partitions" in text
    assert "correct the type of either" in text


def test_keys_without_a_known_type_are_joined() -> None:
    builder = StreamsBuilder()
    table: KTable[Any, Any] = builder.table("b", int, str)
    builder.stream("a").join(table, both)
    builder.stream("c", str, str).select_key(lambda key, value: len(value)).join(table, both)

    assert builder.build().contradictions == ()


def test_serde_for_both_sides_of_a_join_of_streams_counts() -> None:
    as_text: Serde[Any] = Serdes.from_functions(lambda key: str(key).encode(), lambda raw: raw.decode())
    joined: StreamJoined[Any, str, str] = StreamJoined(key_serde=as_text)
    builder = StreamsBuilder()
    left: KStream[Any, str] = builder.stream("a", str, str)
    right: KStream[Any, str] = builder.stream("b", Serdes.long(), str)
    left.join(right, both, windows=JoinWindows(5), stream_joined=joined).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("a", str, str).pipe_input("1", "left")
        driver.create_input_topic("b", int, str).pipe_input(1, "right")

        assert driver.create_output_topic("out", str, str).read_value() == "left+right"


def cogrouped(builder: StreamsBuilder, one: Any, other: Any, materialized: Any = None) -> object:
    cogrouped = builder.stream("a", one, str).group_by_key().cogroup(add)
    return cogrouped.cogroup(builder.stream("b", other, str).group_by_key(), add).aggregate(
        str, materialized=materialized
    )


def cogrouped_in_windows(builder: StreamsBuilder, one: Any, other: Any) -> object:
    cogrouped = builder.stream("a", one, str).group_by_key().cogroup(add)
    windowed = cogrouped.cogroup(builder.stream("b", other, str).group_by_key(), add).windowed_by(TimeWindows(5))
    return windowed.aggregate(str)


@pytest.mark.parametrize("aggregate", [cogrouped, cogrouped_in_windows])
@pytest.mark.parametrize(("one", "other"), [(str, int), (UUID, str), (CustomerId, OrderId)])
def test_cogroup_of_unlike_keys_is_warned_of(aggregate: Join, one: Any, other: Any) -> None:
    """A default serde may take both, or the start says that there is none, and why."""
    builder = StreamsBuilder()
    aggregate(builder, one, other)
    topology = builder.build()

    (text,) = map(str, topology.contradictions)
    assert re.match(
        r"cogroup of KSTREAM-SOURCE-\d*0 \(keys of \w+\) with KSTREAM-SOURCE-\d*1 \(keys of \w+\): .* select_key", text
    )
    with pytest.raises(ConfigError, match=r"needs a key serde and none is set \(cogroup of .* with .*\(keys of \w+\)"):
        TopologyTestDriver(topology)


def test_cogroup_of_unlike_keys_with_a_serde_for_both_is_made() -> None:
    builder = StreamsBuilder()
    serde: Any = Serdes.for_type(cast("Any", str | int))
    cogrouped(builder, str, int, Materialized(key_serde=serde))

    assert builder.build().contradictions == ()


def test_cogroup_with_a_serde_that_one_of_the_streams_cannot_have_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"cogroup of KSTREAM-SOURCE-\d*1 \(keys of int\) .*keys of str"):
        cogrouped(StreamsBuilder(), str, int, Materialized(key_serde=str))


@dataclass(frozen=True)
class Place:
    """A key whose fields are not in the order of their names."""

    town: str
    street: str


def place_of(number: str, street: str) -> Place:
    return Place("Rome", street)


def test_every_record_finds_its_row_where_a_serde_of_a_type_stands_for_its_keys() -> None:
    """As a key of that type is written behind a step, so it is written by the producers of the table."""
    builder = StreamsBuilder()
    shops = builder.table("shops", Serdes.for_type(Place), str)
    builder.stream("visits", str, str).select_key(place_of).join(shops, both).to("out")
    streets = [f"street {number}" for number in range(8)]

    with TopologyTestDriver(builder.build(), partitions=4) as driver:
        rows = driver.create_input_topic("shops", Serdes.for_type(Place), str)
        rows.pipe_key_values((Place("Rome", street), "shop") for street in streets)
        driver.create_input_topic("visits", str, str).pipe_key_values(enumerated(streets))
        found = driver.create_output_topic("out", Place, str).read_key_values_to_dict()

    assert found == {Place("Rome", street): f"{street}+shop" for street in streets}


def enumerated(texts: list[str]) -> list[tuple[str, str]]:
    return [(str(number), text) for number, text in enumerate(texts)]
