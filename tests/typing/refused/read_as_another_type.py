"""A test reads an order, and takes it for a total."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import StreamsBuilder
from pykstreams.testing import TopologyTestDriver


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def check(total: Total) -> None:
    assert total.cents == 5


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
orders.to("copies")
with TopologyTestDriver(builder.build()) as driver:
    copies = driver.create_output_topic("copies", str, Order)
    # error: arg-type of mypy, reportArgumentType of pyright
    check(copies.read_value())
