"""Chooses a topic for each record, and the partition of a topic."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import Produced, RecordContext, StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def topic_of(key: str, order: Order, context: RecordContext) -> str:
    return f"orders-of-{order.customer}"


def partition_of(topic: str, key: str, order: Order, partitions: int) -> int:
    return order.cents % partitions


orders = StreamsBuilder().stream("orders", str, Order)
orders.to(topic_of)
orders.to("spread", Produced(key_serde=str, value_serde=Order, partitioner=partition_of))
