"""Serdes as users type them; checked, never run."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_type

from pykstreams.core.types import Headers
from pykstreams.core.windows import Windowed
from pykstreams.serdes import (
    AvroSerde,
    CombinedKey,
    CombinedKeySerde,
    JsonSerde,
    LongSerde,
    SchemaRegistryAvroSerde,
    SchemaRegistryJsonSerde,
    Serde,
    Serdes,
    SessionWindowedSerde,
    StringSerde,
    TimeWindowedSerde,
    WindowedSerdes,
)


@dataclass
class Order:
    id: int


class HexSerde(Serde[int]):
    """Inherits, and writes both methods."""

    def serialize(self, topic: str, data: int | None, headers: Headers | None = None) -> bytes | None:
        return None if data is None else b"%x" % data

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> int | None:
        return None if data is None else int(data, 16)


def wants(orders: Serde[Order], numbers: Serde[int], texts: Serde[str], plain: Serde[Any]) -> None:
    """Takes serdes as the options of the DSL do."""


schema: Mapping[str, Any] = {"type": "object"}
wants(JsonSerde(Order), LongSerde(), StringSerde(), JsonSerde())
wants(AvroSerde("long", type_=Order), HexSerde(), Serdes.string(), AvroSerde("long"))
wants(
    SchemaRegistryAvroSerde("mock://a", type_=Order),
    Serdes.from_functions(lambda number: b"%d" % number, int),
    Serdes.for_type(str),
    SchemaRegistryJsonSerde("mock://a", schema),
)

assert_type(Serdes.long(), Serde[int])
assert_type(Serdes.list(Serdes.uuid()), Serde[list[uuid.UUID | None]])
assert_type(JsonSerde(Order), JsonSerde[Order])
assert_type(JsonSerde(), JsonSerde[Any])
assert_type(SchemaRegistryAvroSerde("mock://a"), SchemaRegistryAvroSerde[Any])
assert_type(Serdes.double().deserializer.deserialize("t", b""), float | None)

keys: Serde[Windowed[str]] = TimeWindowedSerde(StringSerde(), 10)
sessions: Serde[Windowed[str]] = SessionWindowedSerde(StringSerde())
factory: Serde[Windowed[str]] = WindowedSerdes.time_windowed(Serdes.string(), 10)
assert_type(WindowedSerdes.time_windowed(str, 10), Serde[Windowed[str]])
assert_type(WindowedSerdes.session_windowed(Order), Serde[Windowed[Order]])
assert_type(Serdes.list(int), Serde[list[int | None]])
assert_type(Serdes.for_type(Order, is_key=True), Serde[Order])
combined: Serde[CombinedKey[str, int]] = CombinedKeySerde(StringSerde(), LongSerde())
