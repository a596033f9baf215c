"""The joiner takes a total, and the table has text."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def total(order: Order, other: Total) -> Total:
    return other.plus(order.cents)


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
names = builder.table("names", str, str)
# error: arg-type of mypy, reportArgumentType of pyright
orders.join(names, total).to("totals")
