"""Tests a topology, with typed topics and assertions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams import KeyValue, StreamsBuilder
from pykstreams.testing import TestInputTopic, TestRecord, TopologyTestDriver, assert_records, assert_table


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def test_orders_are_copied() -> None:
    builder = StreamsBuilder()
    builder.stream("orders", str, Order).to("copies")
    with TopologyTestDriver(builder.build()) as driver:
        orders = driver.create_input_topic("orders", str, Order)
        assert_type(orders, TestInputTopic[str, Order])
        orders.pipe_record(TestRecord("1", Order("ann", 5), timestamp=1000))
        copies = driver.create_output_topic("copies", str, Order)
        assert_type(copies.read_key_value(), KeyValue[str, Order])
        assert_records(copies, [("1", Order("ann", 5))])
        assert_table(copies, {"1": Order("ann", 5)})
