"""The foreign key is a number, and the right table has text as keys."""

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


def cents_of(order: Order) -> int:
    return order.cents


builder = StreamsBuilder()
orders = builder.table("orders", str, Order)
totals = builder.table("totals", str, Total)
# error: arg-type of mypy, reportArgumentType of pyright
orders.join(totals, total, foreign_key_extractor=cents_of)
