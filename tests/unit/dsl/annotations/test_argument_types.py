"""A function whose annotated parameters cannot be what a step hands it is told of when the topology is built."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, NewType, Protocol, TypedDict, TypeVar
from uuid import UUID

import pytest

from pykstreams import (
    Consumed,
    CountWindows,
    Grouped,
    JoinWindows,
    KGroupedStream,
    Materialized,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    Windowed,
)
from pykstreams.serdes import JsonSerde

T = TypeVar("T")
CustomerId = NewType("CustomerId", str)


@dataclass(frozen=True)
class Order:
    customer: str


@dataclass(frozen=True)
class Gift(Order):
    note: str = ""


@dataclass(frozen=True)
class Customer:
    name: str


@dataclass(frozen=True)
class Revenue:
    cents: int = 0


class Bill(TypedDict):
    cents: int


class Colour(StrEnum):
    RED = "red"


class Named(Protocol):
    customer: str


class Priced:
    cents: int


@dataclass(frozen=True)
class PricedOrder(Order, Priced):
    pass


def told(builder: StreamsBuilder) -> list[str]:
    return list(map(str, builder.build().contradictions))


def grouped(builder: StreamsBuilder) -> KGroupedStream[str, Order]:
    return builder.stream("orders", str, Order).group_by_key()


def aggregate_first(revenue: Revenue, key: str, order: Order) -> Revenue:
    return revenue


def aggregate_last(key: str, order: Order, revenue: Revenue) -> Revenue:
    return revenue


def sides(order: Order, customer: Customer) -> str:
    return f"{order} {customer}"


def exchanged(customer: Customer, order: Order) -> str:
    return f"{order} {customer}"


def of_number(value: int) -> int:
    return value


def test_aggregator_of_exchanged_parameters_is_told_with_what_it_is_called_with() -> None:
    builder = StreamsBuilder()
    grouped(builder).aggregate(Revenue, untyped(aggregate_first))

    (text,) = told(builder)
    line = aggregate_first.__code__.co_firstlineno
    assert text == (
        f"KGroupedStream.aggregate: aggregate_first (test_argument_types.py:{line}) is called with (key: str, value: "
        "Order, aggregate: Revenue), and annotated to take (revenue: Revenue, key: str, order: Order); put its "
        "parameters into the order of the call, or correct their annotations"
    )


def untyped(function: Callable[..., Any]) -> Any:
    """The function for a type checker that would find what is tested here."""
    return function


def test_topology_is_built_nevertheless_and_warns_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder()
    grouped(builder).aggregate(Revenue, untyped(aggregate_first))

    with caplog.at_level(logging.WARNING):
        topology = builder.build()

    assert isinstance(topology, Topology)
    (record,) = caplog.records
    assert "aggregate_first" in record.getMessage()
    assert record.levelno == logging.WARNING


def test_nothing_is_said_of_functions_that_fit(caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder()
    grouped(builder).aggregate(Revenue, aggregate_last)
    orders, customers = builder.stream("more", str, Order), builder.table("customers", str, Customer)
    orders.join(customers, sides).filter(lambda key, value: True).to("out")

    assert told(builder) == []
    assert caplog.records == []


def in_windows(builder: StreamsBuilder, aggregator: Any) -> None:
    grouped(builder).windowed_by(TimeWindows(10)).aggregate(Revenue, aggregator)


def in_sessions(builder: StreamsBuilder, aggregator: Any) -> None:
    def merge(key: str, one: Revenue, other: Revenue) -> Revenue:
        return one

    windows = SessionWindows(10)
    grouped(builder).windowed_by(windows).aggregate(Revenue, aggregator, merge)


def by_number_of_records(builder: StreamsBuilder, aggregator: Any) -> None:
    grouped(builder).windowed_by(CountWindows(2)).aggregate(Revenue, aggregator)


def cogrouped(builder: StreamsBuilder, aggregator: Any) -> None:
    grouped(builder).cogroup(aggregator).aggregate(Revenue)


def of_table(builder: StreamsBuilder, aggregator: Any) -> None:
    def select(key: str, order: Order) -> tuple[str, Order]:
        return order.customer, order

    builder.table("orders", str, Order).group_by(select).aggregate(Revenue, aggregator, aggregator)


def behind_a_selected_key(builder: StreamsBuilder, aggregator: Any) -> None:
    def select(key: str, order: Order) -> str:
        return order.customer

    builder.stream("orders", str, Order).group_by(select).aggregate(Revenue, aggregator)


AGGREGATIONS = (
    in_windows,
    in_sessions,
    by_number_of_records,
    cogrouped,
    of_table,
    behind_a_selected_key,
)


@pytest.mark.parametrize("aggregate", AGGREGATIONS)
def test_aggregators_of_every_kind_are_looked_at(aggregate: Callable[[StreamsBuilder, Any], None]) -> None:
    wrong, right = StreamsBuilder(), StreamsBuilder()
    aggregate(wrong, aggregate_first)
    aggregate(right, aggregate_last)

    assert told(wrong)
    assert all("aggregate_first" in text for text in told(wrong))
    assert told(right) == []


def test_aggregate_has_the_type_that_it_begins_with() -> None:
    def add(key: str, order: Order, total: int) -> int:
        return total + 1

    for aggregation in (
        lambda builder: grouped(builder).aggregate(untyped(Revenue), add),
        lambda builder: grouped(builder).cogroup(add).aggregate(untyped(Revenue)),
    ):
        builder = StreamsBuilder()
        aggregation(builder)

        (text,) = told(builder)
        assert "add (" in text
        assert "aggregate: Revenue" in text


def test_aggregate_of_a_store_has_the_type_of_its_serde() -> None:
    def add(key: str, order: Order, total: int) -> Any:
        return total

    builder = StreamsBuilder()
    grouped(builder).aggregate(lambda: None, untyped(add), materialized=Materialized(value_serde=Revenue))

    assert "aggregate: Revenue" in told(builder)[0]


def test_reducers_take_values() -> None:
    def reduce(key: str, order: Order) -> Order:
        return order

    builder = StreamsBuilder()
    grouped(builder).reduce(untyped(reduce))

    assert "(aggregate: Order, new: Order)" in told(builder)[0]


def join_streams(builder: StreamsBuilder, joiner: Any) -> None:
    customers = builder.stream("customers", str, Customer)
    builder.stream("orders", str, Order).join(customers, joiner, windows=JoinWindows(5))


def join_table(builder: StreamsBuilder, joiner: Any) -> None:
    builder.stream("orders", str, Order).left_join(builder.table("customers", str, Customer), joiner)


def join_global_table(builder: StreamsBuilder, joiner: Any) -> None:
    customers = builder.global_table("customers", str, Customer)
    builder.stream("orders", str, Order).join(customers, joiner, key_selector=lambda key, order: order.customer)


def join_tables(builder: StreamsBuilder, joiner: Any) -> None:
    builder.table("orders", str, Order).join(builder.table("customers", str, Customer), joiner)


def join_by_foreign_key(builder: StreamsBuilder, joiner: Any) -> None:
    def customer(order: Order) -> str:
        return order.customer

    builder.table("orders", str, Order).join(
        builder.table("customers", str, Customer), joiner, foreign_key_extractor=customer
    )


JOINS = (join_streams, join_table, join_global_table, join_tables, join_by_foreign_key)


@pytest.mark.parametrize("join", JOINS)
def test_joiners_of_exchanged_sides_are_told(join: Callable[[StreamsBuilder, Any], None]) -> None:
    wrong, right = StreamsBuilder(), StreamsBuilder()
    join(wrong, exchanged)
    join(right, sides)

    assert "(value: Order, other value: Customer), and annotated to take (customer: Customer, order: Order)" in "".join(
        told(wrong)
    )
    assert told(right) == []


def test_extractor_of_the_other_side_is_told() -> None:
    def customer(customer: Customer) -> str:
        return customer.name

    builder = StreamsBuilder()
    orders, customers = builder.table("orders", str, Order), builder.table("customers", str, Customer)
    orders.join(customers, sides, foreign_key_extractor=untyped(customer))
    customers.one_to_many_join(orders, exchanged, key_extractor=untyped(customer))

    assert [text.partition(":")[0] for text in told(builder)] == ["KTable.join", "KTable.one_to_many_join"]


def test_mappers_predicates_selectors_branches_and_actions_are_looked_at() -> None:
    def pair(key: int, value: str) -> Any:
        return key, value

    builder = StreamsBuilder()
    stream, wrong = builder.stream("in", str, str), untyped(pair)
    stream.filter(wrong)
    stream.filter_not(wrong)
    stream.map(wrong)
    stream.select_key(wrong)
    stream.flat_map(wrong)
    stream.group_by(wrong)
    stream.peek(wrong)
    stream.foreach(wrong)
    stream.split().branch(wrong)
    stream.map_values(wrong, with_key=True)
    stream.map_values(untyped(of_number))
    stream.flat_map_values(untyped(of_number))
    stream.to_table().filter(wrong)
    stream.to_table().to_stream(wrong)

    assert len(told(builder)) == 14


def test_keys_in_windows_are_no_keys() -> None:
    def shown(key: str, count: int) -> str:
        return key

    def shown_in_window(key: Windowed[str], count: int) -> str:
        return key.key

    windows = TimeWindows(10)
    counts = (builder := StreamsBuilder()).stream("in", str, str).group_by_key().windowed_by(windows).count()
    counts.to_stream(untyped(shown))
    counts.to_stream(shown_in_window)

    (text,) = told(builder)
    assert "(key: Windowed[str], value: int)" in text


def test_methods_partials_and_objects_are_looked_at() -> None:
    class Shop:
        def add(self, value: int) -> int:
            return value

        def __call__(self, value: int) -> int:
            return value

    def with_rate(rate: float, value: int, *, name: str) -> int:
        return value

    builder = StreamsBuilder()
    stream = builder.stream("in", str, str)
    for function in (Shop().add, Shop(), functools.partial(with_rate, 1.0, name="x")):
        stream.map_values(untyped(function))

    assert len(told(builder)) == 3


FITTING: list[tuple[Any, Any]] = [
    (int, float),
    (float, int),
    (bool, int),
    (int, bool),
    (int, Decimal),
    (Decimal, float),
    (str, CustomerId),
    (CustomerId, str),
    (str, Annotated[str, "text"]),
    (str, str | None),
    (str, int | str),
    (str, object),
    (str, Any),
    (str, T),
    (str, Sequence[str]),
    (str, Colour),
    (Colour, str),
    (str, Literal["a", "b"]),
    (str, "Unknown"),
    (str, Named),
    (Order, Named),
    (Order, Gift),
    (Gift, Order),
    (Order, Priced),
    (Order, Mapping[str, Any]),
    (Bill, dict[str, Any]),
    (Bill, Mapping[str, Any]),
    (dict[str, int], dict[str, str]),
    (list[int], Sequence[int]),
    (list[int], list[str]),
    (tuple[int, str], tuple[Any, ...]),
    (int | str, str),
    (Serdes.from_functions(lambda value: b"", lambda data: data), int),
    (JsonSerde(), Order),
    (bytes, bytearray),
    (bytes, memoryview),
]


@pytest.mark.parametrize(("given", "annotated"), FITTING, ids=repr)
def test_types_that_a_value_may_have_at_once_are_not_told(given: Any, annotated: Any) -> None:
    def take(value: Any) -> Any:
        return value

    take.__annotations__["value"] = annotated
    builder = StreamsBuilder()
    builder.stream("in", str, given).map_values(take)

    assert told(builder) == []


CONTRADICTING: list[tuple[Any, Any]] = [
    (str, int),
    (str, bytes),
    (str, float | None),
    (str, Order),
    (str, list[str]),
    (UUID, str),
    (Order, Customer),
    (Order, dict[str, Any]),
    (Bill, Order),
    (list[int], str),
    (list[int], dict[str, int]),
    (int | str, Order),
    (Order | None, Customer | str | None),
    (Serdes.string(), int),
    (Serdes.integer(), str),
    (JsonSerde(Order), Customer),
    (CustomerId, Annotated[int, "number"]),
]


@pytest.mark.parametrize(("given", "annotated"), CONTRADICTING, ids=repr)
def test_types_that_no_value_has_at_once_are_told(given: Any, annotated: Any) -> None:
    def take(value: Any) -> Any:
        return value

    take.__annotations__["value"] = annotated
    builder = StreamsBuilder()
    builder.stream("in", str, given).map_values(take)

    assert len(told(builder)) == 1


def test_nothing_is_said_where_a_function_is_decorated_a_class_or_without_annotations() -> None:
    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(value: Any) -> Any:
            return function(len(value))

        return call

    builder = StreamsBuilder()
    stream = builder.stream("in", str, str)
    stream.map_values(decorated(of_number))
    stream.map_values(untyped(Revenue))  # a class may convert what it is given
    stream.map_values(len)
    stream.map_values(lambda value: value)

    assert told(builder) == []


def test_nothing_is_said_where_the_types_of_a_stream_are_not_known() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(of_number)
    builder.stream("more", Consumed(key_serde=str)).group_by_key(Grouped(key_serde=str)).reduce(untyped(sides))
    builder.stream("third", str, str).map_values(lambda value: value).map_values(untyped(of_number))

    assert told(builder) == []


def test_annotations_that_cannot_be_evaluated_are_let_through() -> None:
    def take(value: object, *others: object) -> str:
        return ""

    take.__annotations__.update(value="1 / 0", others="no.such.name")
    builder = StreamsBuilder()
    builder.stream("in", str, str).map_values(untyped(take))

    assert told(builder) == []
