"""A mapper of key and value has to be said: with_key=True."""

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


def line_of(key: str, order: Order) -> str:
    return f"{key} {order.customer}"


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
# error: arg-type of mypy, reportArgumentType of pyright
orders.map_values(line_of).to("lines")
