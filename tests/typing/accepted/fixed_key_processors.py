"""A processor that keeps keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams import FixedKeyProcessor, FixedKeyRecord, KStream, StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


class Cents(FixedKeyProcessor[str, Order, int]):
    def process(self, record: FixedKeyRecord[str, Order]) -> None:
        self.context.forward(record.replace(value=record.value.cents))


assert_type(StreamsBuilder().stream("orders", str, Order).process_values(Cents), KStream[str, int])
