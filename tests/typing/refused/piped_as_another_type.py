"""A test pipes a total into a topic of orders."""

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


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
orders.to("copies")
with TopologyTestDriver(builder.build()) as driver:
    # error: arg-type of mypy, reportArgumentType of pyright
    driver.create_input_topic("orders", str, Order).pipe_input("1", Total(5))
