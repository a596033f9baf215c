"""Asks a service for each value, many at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_type

from pykstreams import KStream, StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


async def name_of(order: Order) -> str:
    return order.customer.title()


names = StreamsBuilder().stream("orders", str, Order).map_values_async(name_of, timeout=timedelta(seconds=5), retries=2)
assert_type(names, KStream[str, str])
