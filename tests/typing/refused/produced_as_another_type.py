"""Orders are written as totals."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import Produced, StreamsBuilder


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
orders.to("totals", Produced(key_serde=str, value_serde=Total))
