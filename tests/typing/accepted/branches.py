"""Splits a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams import Branched, KStream, StreamsBuilder


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


def paid(stream: KStream[str, Order]) -> KStream[str, Order]:
    return stream.filter(lambda key, order: order.cents > 0)


def in_total(stream: KStream[str, Order]) -> None:
    stream.map_values(lambda order: Total(order.cents)).to("totals")


worked_on = (
    StreamsBuilder()
    .stream("orders", str, Order)
    .split()
    .branch(lambda key, order: order.cents > 10_000, Branched("large", function=paid))
    .branch(lambda key, order: order.cents > 1_000, Branched(function=lambda stream: stream.peek(print)))
    .branch(lambda key, order: order.cents > 100, Branched(function=lambda stream: None))
    .default_branch(Branched(consumer=in_total))
)
assert_type(worked_on, dict[str, KStream[str, Order]])
