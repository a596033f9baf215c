"""Joins streams with tables, and tables with each other, by key and by a foreign key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams import KStream, KTable, StreamsBuilder


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


def named_or_not(order: Order, name: str | None) -> str:
    return f"{name or '?'}: {order.cents}"


def customer_of(order: Order) -> str:
    return order.customer


builder = StreamsBuilder()
orders, names = builder.stream("orders", str, Order), builder.table("names", str, str)
latest = builder.table("latest", int, Order)
assert_type(orders.join(names, named), KStream[str, str])
assert_type(orders.left_join(names, named_or_not), KStream[str, str])
assert_type(names.join(builder.table("titles", str, str), lambda name, title: f"{title} {name}"), KTable[str, str])
assert_type(latest.join(names, named, foreign_key_extractor=customer_of), KTable[int, str])
