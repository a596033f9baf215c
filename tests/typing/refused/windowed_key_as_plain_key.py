"""The key of a windowed count is a Windowed, and its key is in it."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import StreamsBuilder, TimeWindows


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
counts = orders.group_by_key().windowed_by(TimeWindows(60_000)).count()
# error: attr-defined of mypy, reportAttributeAccessIssue of pyright
counts.to_stream().filter(lambda key, count: key.startswith("a")).to("counts")
