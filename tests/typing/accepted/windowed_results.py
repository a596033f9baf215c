"""Takes a windowed key apart."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import StreamsBuilder, TimeWindows, Windowed


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def line(key: Windowed[str], count: int) -> str:
    return f"{key.key} from {key.window.start} to {key.window.end}: {count}"


counts = StreamsBuilder().stream("orders", str, Order).group_by_key().windowed_by(TimeWindows(60_000)).count()
counts.to_stream().map_values(line, with_key=True).to("lines")
