"""A stream joined with a table by a foreign key: there by that key, and back by the stream's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    Joined,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Produced,
    Repartitioned,
    Serdes,
    StreamsBuilder,
    TopologyError,
)
from pykstreams.core.errors import SerdeError
from pykstreams.serdes.carried import Carried, CarriedSerde
from pykstreams.state import Stores
from pykstreams.testing import TopologyTestDriver

TEXT = Serdes.string()
TEXTS = Consumed(key_serde=TEXT, value_serde=TEXT)
DEFAULTS = {"default.key.serde": TEXT, "default.value.serde": TEXT}
Orders = KStream[str, str]
Customers = KTable[str, str]
Join = Callable[[Orders, Customers], KStream[Any, Any]]


def customer_of(order: str | None, value: str) -> str | None:
    """The customer of an order such as ``ada:book``."""
    customer = value.split(":")[0]
    return customer or None


def inner(orders: Orders, customers: Customers) -> KStream[Any, Any]:
    return orders.join(customers, lambda order, name: f"{order} of {name}", key_selector=customer_of)


def left(orders: Orders, customers: Customers) -> KStream[Any, Any]:
    return orders.left_join(customers, lambda order, name: f"{order} of {name}", key_selector=customer_of)


def with_key(orders: Orders, customers: Customers) -> KStream[Any, Any]:
    return orders.join(
        customers, lambda key, order, name: f"{key}: {order} of {name}", with_key=True, key_selector=customer_of
    )


def run(join: Join, *orders: tuple[str | None, str | None], versioned: bool = False) -> list[tuple[Any, Any]]:
    builder = StreamsBuilder()
    history = Materialized[str, str](Stores.persistent_versioned_key_value_store("history", timedelta(hours=1)))
    customers = builder.table("customers", TEXTS, materialized=history if versioned else None)
    join(builder.stream("orders", TEXTS), customers).to("out", Produced(key_serde=TEXT, value_serde=TEXT))
    with TopologyTestDriver(builder.build(), DEFAULTS) as driver:
        table = driver.create_input_topic("customers", TEXT, TEXT)
        table.pipe_input("ada", "Ada", 10)
        table.pipe_input("ada", "Lovelace", 30)
        stream = driver.create_input_topic("orders", TEXT, TEXT)
        for key, value in orders:
            stream.pipe_input(key, value, 20)
        if versioned:
            stream.pipe_input("late", "ada:late", 2000)
        return [*driver.create_output_topic("out", TEXT, TEXT).read_key_values()]


def test_records_are_joined_with_the_rows_they_refer_to_and_keep_their_keys() -> None:
    assert run(inner, ("1", "ada:book"), ("2", "bob:pen")) == [("1", "ada:book of Lovelace")]


def test_a_left_join_has_results_for_records_without_a_row_or_a_reference() -> None:
    assert run(left, ("1", "ada:book"), ("2", "bob:pen"), ("3", ":cup")) == [
        ("1", "ada:book of Lovelace"),
        ("2", "bob:pen of None"),
        ("3", ":cup of None"),
    ]


def test_records_without_reference_or_value_are_dropped() -> None:
    assert run(inner, ("1", ":cup"), ("2", None), ("3", "ada:book")) == [("3", "ada:book of Lovelace")]


def test_records_without_key_are_joined_and_stay_without() -> None:
    assert run(inner, (None, "ada:book")) == [(None, "ada:book of Lovelace")]


def test_the_joiner_gets_the_own_key_of_the_record() -> None:
    assert run(with_key, ("1", "ada:book")) == [("1", "1: ada:book of Lovelace")]


def test_a_versioned_table_is_asked_for_the_row_of_that_time() -> None:
    assert run(inner, ("1", "ada:book"), versioned=True)[0] == ("1", "ada:book of Ada")


def test_records_wait_for_a_versioned_table_by_the_grace() -> None:
    def join(orders: Orders, customers: Customers) -> KStream[Any, Any]:
        return orders.join(
            customers,
            lambda order, name: f"{order} of {name}",
            key_selector=customer_of,
            joined=Joined(grace_period=timedelta(seconds=1)),
        )

    assert run(join, ("1", "ada:book"), versioned=True) == [("1", "ada:book of Ada")]


def test_state_below_is_by_the_keys_of_the_stream() -> None:
    def count(orders: Orders, customers: Customers) -> KStream[Any, Any]:
        counts = inner(orders, customers).group_by_key().count()
        return counts.to_stream().map_values(str)

    found = run(count, ("1", "ada:book"), ("1", "ada:pen"), ("2", "ada:cup"))

    assert found == [("1", "1"), ("1", "2"), ("2", "1")]


def described(join: Join) -> str:
    builder = StreamsBuilder()
    orders, customers = builder.stream("orders", TEXTS), builder.table("customers", TEXTS)
    join(orders, customers).to("out")
    return str(builder.build().describe())


def test_names_are_those_of_the_equal_topology_of_single_steps() -> None:
    def single_steps(orders: Orders, customers: Customers) -> KStream[Any, Any]:
        selected: Orders = orders.select_key(lambda key, value: value)
        return selected.join(customers, lambda order, name: order).select_key(lambda key, value: value).repartition()

    assert described(inner) == described(single_steps)


def test_topics_have_the_names_that_are_given() -> None:
    def named(back: Repartitioned[str, str] | None) -> Join:
        return lambda orders, customers: orders.join(
            customers,
            lambda order, name: f"{order} of {name}",
            key_selector=customer_of,
            joined=Joined(name="buyer"),
            repartitioned=back,
        )

    implied, given = described(named(None)), described(named(Repartitioned(name="home")))

    assert ("buyer-repartition" in implied, "buyer-back-repartition" in implied) == (True, True)
    assert ("buyer-repartition" in given, "home-repartition" in given) == (True, True)


def test_serdes_are_those_that_are_given() -> None:
    builder = StreamsBuilder()
    sizes = builder.table("sizes", Consumed(key_serde=Serdes.integer(), value_serde=Serdes.long()))
    numbers = builder.stream("numbers", Consumed(key_serde=TEXT, value_serde=Serdes.integer()))
    numbers.join(
        sizes,
        lambda number, size: number * size,
        key_selector=lambda key, number: number,
        repartitioned=Repartitioned(value_serde=Serdes.long()),
    ).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("sizes", Serdes.integer(), Serdes.long()).pipe_input(7, 3)
        driver.create_input_topic("numbers", TEXT, Serdes.integer()).pipe_input("a", 7)

        assert driver.create_output_topic("out", TEXT, Serdes.long()).read_key_values() == [("a", 21)]


def test_repartitioned_is_refused_where_nothing_comes_back() -> None:
    builder = StreamsBuilder()
    orders, customers = builder.stream("orders", TEXTS), builder.table("customers", TEXTS)
    back: Any = Repartitioned(name="home")

    with pytest.raises(TypeError, match="joined by the stream's keys; leave it out"):
        orders.join(customers, lambda order, name: order, repartitioned=back)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="is a stream; leave it out"):
        orders.join(orders, lambda a, b: a, windows=JoinWindows(5), repartitioned=back)  # type: ignore[call-overload]


def test_history_options_are_checked_as_in_other_joins() -> None:
    builder = StreamsBuilder()
    orders, customers = builder.stream("orders", TEXTS), builder.table("customers", TEXTS)

    with pytest.raises(TopologyError, match="is not versioned"):
        orders.join(customers, lambda a, b: a, key_selector=customer_of, on_expired_history="drop")


@pytest.mark.parametrize("value", [Carried(None, "v"), Carried(b"", "v"), Carried(b"key", "")])
def test_values_carry_their_keys_through_bytes(value: Carried[str]) -> None:
    serde = CarriedSerde(TEXT)

    assert serde.deserialize("topic", serde.serialize("topic", value)) == value


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\0\0\0\5key", b"\xff\xff\xff\xfekey"])
def test_bytes_that_carry_no_key_are_refused(data: bytes) -> None:
    with pytest.raises(SerdeError, match="CarriedSerde"):
        CarriedSerde(TEXT).deserialize("topic", data)
