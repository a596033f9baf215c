"""Customers are text, and said to be numbers."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import Grouped, StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def customer_of(key: str, order: Order) -> str:
    return order.customer


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
# error: arg-type of mypy, reportArgumentType of pyright
orders.group_by(customer_of, Grouped(key_serde=int)).count()
