"""The aggregators make totals, and the aggregate begins as a number."""

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


def add(key: str, order: Order, total: Total) -> Total:
    return total.plus(order.cents)


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
# error: arg-type of mypy, reportArgumentType of pyright
orders.group_by_key().cogroup(add).aggregate(int)
