"""Serdes and types side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams import Consumed, KStream, Materialized, Serdes, StreamsBuilder
from pykstreams.serdes import JsonSerde


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
assert_type(builder.stream("a", Serdes.string(), Order), KStream[str, Order])
assert_type(builder.stream("b", Consumed(key_serde=str, value_serde=JsonSerde(Order))), KStream[str, Order])
assert_type(builder.stream("c", str, list[Order]), KStream[str, list[Order]])
builder.stream("d", str, Order).group_by_key().count(materialized=Materialized("counts", value_serde=Serdes.integer()))
