"""Splits a stream."""

from __future__ import annotations

from dataclasses import dataclass
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


branches = (
    StreamsBuilder()
    .stream("orders", str, Order)
    .split(name="orders-")
    .branch(lambda key, order: order.cents > 10_000, "large")
    .default_branch("small")
)
assert_type(branches, dict[str, KStream[str, Order]])
branches["orders-large"].to("large")
