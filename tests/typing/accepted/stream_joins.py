"""Joins streams by key in windows; outer ones with None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams import JoinWindows, KStream, StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def paid(order: Order, payment: int) -> Total:
    return Total(order.cents - payment)


def paid_or_not(order: Order | None, payment: int | None) -> Total:
    return Total((order.cents if order else 0) - (payment or 0))


builder = StreamsBuilder()
orders, payments = builder.stream("orders", str, Order), builder.stream("payments", str, int)
assert_type(orders.join(payments, paid, windows=JoinWindows(60_000)), KStream[str, Total])
assert_type(orders.outer_join(payments, paid_or_not, windows=JoinWindows(60_000)), KStream[str, Total])
