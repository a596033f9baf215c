"""A lambda that aggregates is checked by what the aggregate begins with."""

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


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
# error: attr-defined of mypy, reportAttributeAccessIssue of pyright
orders.group_by_key().aggregate(Total, lambda key, order, total: total.pluss(order.cents))
