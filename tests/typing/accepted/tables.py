"""Filters, maps and regroups a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams import KTable, StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def by_size(customer: str, order: Order) -> tuple[int, Order]:
    return order.cents // 100, order


def add(size: int, order: Order, total: Total) -> Total:
    return total.plus(order.cents)


def subtract(size: int, order: Order, total: Total) -> Total:
    return total.plus(-order.cents)


orders = StreamsBuilder().table("orders", str, Order, materialized="orders")
assert_type(orders.filter(lambda key, order: order.cents > 5), KTable[str, Order])
assert_type(orders.map_values(lambda order: order.cents), KTable[str, int])
assert_type(orders.group_by(by_size).aggregate(Total, add, subtract), KTable[int, Total])
