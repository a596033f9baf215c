"""A serde of one's own, registered for a type."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import Serdes, StreamsBuilder, types
from pykstreams.serdes import Serde
from pykstreams.types import Headers


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


class OrderSerde(Serde[Order]):
    def serialize(self, topic: str, data: Order | None, headers: Headers | None = None) -> bytes | None:
        return None if data is None else f"{data.customer},{data.cents}".encode()

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Order | None:
        if data is None:
            return None
        customer, cents = data.decode().split(",")
        return Order(customer, int(cents))


types.register(Order, OrderSerde())
types.register(Total, Serdes.from_functions(lambda total: b"%d" % total.cents, lambda data: Total(int(data))))
StreamsBuilder().stream("orders", str, Order).to("copies")
