"""Types in place of serdes, with the types that must come out; checked, never run. Wrong programs are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from pykstreams import (
    Consumed,
    GlobalKTable,
    Grouped,
    JoinWindows,
    KGroupedStream,
    KStream,
    KTable,
    Materialized,
    Produced,
    Serdes,
    StreamsBuilder,
    TimeWindows,
    Windowed,
)
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TestInputTopic, TestOutputTopic, TopologyTestDriver
from pykstreams.types import register


@dataclass
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0


@dataclass(frozen=True)
class CustomerId:
    name: str


def by_customer(key: str, order: Order) -> CustomerId:
    return CustomerId(order.customer)


def add(key: CustomerId, order: Order, total: Total) -> Total:
    return Total(total.cents + order.cents)


def total_of(order: Order) -> Total:
    return Total(order.cents)


def both(order: Order, other: Order) -> Total:
    return Total(order.cents + other.cents)


def valid(builder: StreamsBuilder, driver: TopologyTestDriver) -> None:
    orders = builder.stream("orders", str, Order)
    assert_type(orders, KStream[str, Order])
    assert_type(builder.stream(["a", "b"], str, int), KStream[str, int])
    assert_type(builder.stream("orders", str, JsonSerde(Order)), KStream[str, Order])
    assert_type(builder.stream("orders", Serdes.string(), dict[str, int]), KStream[str, dict[str, int]])
    assert_type(builder.stream("orders", Consumed(key_serde=str, value_serde=Order)), KStream[str, Order])
    assert_type(builder.stream("orders", consumed=Consumed(key_serde=str, value_serde=Order)), KStream[str, Order])
    assert_type(builder.table("customers", str, Order), KTable[str, Order])
    assert_type(builder.table("customers", str, Order, materialized="kept"), KTable[str, Order])
    assert_type(builder.global_table("customers", str, list[Order]), GlobalKTable[str, list[Order]])

    grouped = orders.group_by(by_customer)
    assert_type(grouped, KGroupedStream[CustomerId, Order])
    assert_type(grouped.aggregate(Total, add), KTable[CustomerId, Total])
    assert_type(grouped.aggregate(Total, add, materialized="totals"), KTable[CustomerId, Total])
    assert_type(grouped.count(), KTable[CustomerId, int])
    assert_type(grouped.windowed_by(TimeWindows(5)).aggregate(Total, add), KTable[Windowed[CustomerId], Total])
    assert_type(grouped.cogroup(add).aggregate(Total), KTable[CustomerId, Total])
    assert_type(orders.group_by(lambda key, order: order.cents, Grouped(key_serde=int)), KGroupedStream[int, Order])
    assert_type(orders.map_values(total_of), KStream[str, Total])
    assert_type(orders.join(orders, both, windows=JoinWindows(5)), KStream[str, Total])
    orders.map_values(total_of).to("totals", Produced(key_serde=str, value_serde=Total))
    grouped.aggregate(Total, add, materialized=Materialized("totals", value_serde=Total))

    assert_type(driver.create_input_topic("orders", str, Order), TestInputTopic[str, Order])
    assert_type(driver.create_output_topic("totals", CustomerId, Total), TestOutputTopic[CustomerId, Total])
    assert_type(driver.create_input_topic("orders"), TestInputTopic[Any, Any])
    register(Order, JsonSerde(Order))


def refused(builder: StreamsBuilder, driver: TopologyTestDriver) -> None:
    orders = builder.stream("orders", str, Order)
    builder.stream("orders", str)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    builder.stream("orders", "str", "Order")  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    builder.stream("orders", Consumed(key_serde=str), Order)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    builder.table("orders", 5, Order)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    orders.map_values(by_customer)  # type: ignore[arg-type] # pyright: ignore[reportCallIssue, reportArgumentType]
    orders.filter(lambda key, order: order.price > 5)  # type: ignore[attr-defined] # pyright: ignore
    orders.group_by_key().aggregate(Total, add)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    orders.group_by(by_customer).aggregate(list[int], add)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    orders.to("out", Produced(key_serde=str, value_serde=Total))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    orders.group_by_key(Grouped(key_serde=int))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    orders.merge(builder.stream("others", str, Total))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    orders.join(builder.table("t", int, Order), both)  # type: ignore[arg-type] # pyright: ignore
    orders.join(builder.table("t", str, Total), both)  # type: ignore[arg-type] # pyright: ignore
    driver.create_input_topic("orders", str, Order).pipe_input("a", Total())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    driver.create_input_topic("orders", str, Order).pipe_input(1, Order("a", 1))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    print(driver.create_output_topic("out", str, Total).read_value().price)  # type: ignore[attr-defined] # pyright: ignore
    register(Order, JsonSerde(Total))  # type: ignore[misc] # pyright: ignore[reportArgumentType]
    register("Order", JsonSerde(Order))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    Materialized("totals", value_serde=5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    orders.select_key(lambda key: key)  # type: ignore[arg-type, misc] # pyright: ignore[reportArgumentType]
    orders.map(total_of)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
