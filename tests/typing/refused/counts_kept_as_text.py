"""A count is kept as a number."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import Materialized, StreamsBuilder


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
# error: arg-type of mypy, reportArgumentType of pyright
orders.group_by_key().count(materialized=Materialized("counts", value_serde=str))
