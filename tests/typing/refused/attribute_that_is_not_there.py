"""An order has cents, and no price."""

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
orders.filter(lambda key, order: order.price > 5).to("large")
