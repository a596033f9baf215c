"""The processor says that it forwards numbers, and forwards text."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import Processor, Record


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


class Cents(Processor[str, Order, str, int]):
    def process(self, record: Record[str, Order]) -> None:
        # error: arg-type of mypy, reportArgumentType of pyright
        self.context.forward(Record(record.key, record.value.customer, record.timestamp))
