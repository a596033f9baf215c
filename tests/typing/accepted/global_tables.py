"""Joins a stream with a global table by a key of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams import GlobalKTable, KStream, StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def named(order: Order, name: str) -> str:
    return f"{name}: {order.cents}"


builder = StreamsBuilder()
names = builder.global_table("names", str, str)
assert_type(names, GlobalKTable[str, str])
joined = builder.stream("orders", int, Order).join(names, named, key_selector=lambda key, order: order.customer)
assert_type(joined, KStream[int, str])
