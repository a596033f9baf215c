"""Aggregates two streams into one table, by a lambda and by a function."""

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


def pay(customer: str, cents: int, total: Total) -> Total:
    return total.plus(-cents)


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order).group_by_key()
payments = builder.stream("payments", str, int).group_by_key()
owed = orders.cogroup(lambda customer, order, total: total.plus(order.cents), returns=Total).cogroup(payments, pay)
assert_type(owed.aggregate(Total), KTable[str, Total])
