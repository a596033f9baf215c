"""A lambda of a cogroup is checked by what it is said to return."""

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
grouped = orders.group_by_key()
# error: attr-defined of mypy, reportAttributeAccessIssue of pyright
grouped.cogroup(lambda key, order, total: total.pluss(order.cents), returns=Total)
