"""The processor takes totals, and the stream has orders."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import Processor, Record, StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


class Cents(Processor[str, Total, str, int]):
    def process(self, record: Record[str, Total]) -> None:
        self.context.forward(Record(record.key, record.value.cents, record.timestamp))


builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
# error: arg-type of mypy, reportArgumentType of pyright
orders.process(Cents).to("cents")
