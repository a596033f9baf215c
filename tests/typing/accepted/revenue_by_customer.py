"""Aggregates by a class and a lambda, which is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams import Grouped, KTable, StreamsBuilder


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
by_customer = orders.group_by(lambda key, order: order.customer, Grouped(key_serde=str, value_serde=Order))
revenue = by_customer.aggregate(Total, lambda customer, order, total: total.plus(order.cents))
assert_type(revenue, KTable[str, Total])
revenue.to_stream().to("revenue")
