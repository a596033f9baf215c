"""The function of a branch gives a stream of totals, and the result of the split would say that it has orders."""

from __future__ import annotations

from dataclasses import dataclass

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


def totals(stream: KStream[str, Order]) -> KStream[str, Total]:
    return stream.map_values(lambda order: Total(order.cents))


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
# error: arg-type of mypy, reportArgumentType of pyright
orders.split().default_branch(Branched("totals", function=totals))["KSTREAM-BRANCH-0000000001totals"].to("totals")
