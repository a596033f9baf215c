"""Rows of a non-key join on their way: sent as they are, under their own keys, to the partition of their mapped key.

The topic holds key and value of the table; the mapped key, serialized, goes in the header ``mapped-key``, so that also
a deletion, which has no value to be mapped, says which row it deletes. A row without a mapped key has a null header.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Decoder, Encoder, Headers, KeyValueMapper
from pykstreams.processors.foreign_keys.repartitioned_rows import KeepRepartitioned, repartition_rows
from pykstreams.processors.process import Process
from pykstreams.serdes.base import (
    AnySerde,
    CompiledSerde,
    Serde,
    bind_deserializer,
    bind_serializer,
    refused_bytes,
)
from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.serdes.defaults import SerdeOrDefault, or_default

K = TypeVar("K")
V = TypeVar("V")

MAPPED_KEY: Final = "mapped-key"
"""The header."""


class MappedKey(NamedTuple):
    """The key of a row, and its mapped key as a value and as bytes."""

    mapped: object
    key: object
    mapped_bytes: bytes | None


@dataclass(frozen=True)
class MappedKeySerde(CompiledSerde[Any], Generic[K]):
    """Writes the row's own key of a ``MappedKey``; reads a ``CombinedKey(mapped key, key)`` with help of the header."""

    mapped: AnySerde
    key: Serde[K]

    def encoder(self, topic: str) -> Encoder:
        encode_key = bind_serializer(self.key.serializer, topic)

        def encode(data: Any, headers: Headers) -> bytes | None:
            return encode_key(data.key, headers)

        return encode

    def decoder(self, topic: str) -> Decoder:
        decode_mapped = bind_deserializer(self.mapped.deserializer, topic)
        decode_key = bind_deserializer(self.key.deserializer, topic)

        def decode(data: bytes | None, headers: Headers) -> CombinedKey[object, object]:
            for name, raw in reversed(headers):
                if name == MAPPED_KEY:
                    mapped = None if raw is None else decode_mapped(raw, headers)
                    return CombinedKey(mapped, decode_key(data, headers))
            why = f"the record has no header {MAPPED_KEY!r}; only this application may write to its repartition topics"
            raise refused_bytes("MappedKeySerde", topic, data, why)

        return decode


@dataclass(frozen=True, slots=True)
class RepartitionMapped(Generic[K, V]):
    """Sends each row to the partition of the key that ``mapper(key, value)`` gives, with that key in the header.

    :param mapped_serde: of mapped keys; ``None`` for the default serde of keys.
    :param topic: what that serde is told, without the application id.
    :param keeps_null: whether rows without a mapped key are sent, too.
    """

    takes_back: ClassVar[bool] = True

    mapper: KeyValueMapper[K, V, object]
    mapped_serde: SerdeOrDefault
    topic: str
    keeps_null: bool = False

    def build(self, context: OperatorContext) -> Process:
        mapper = self.mapper
        serde = or_default(self.mapped_serde, lambda: context.processing.key_serde)
        encode = bind_serializer(serde.serializer, f"{context.processing.application_id}-{self.topic}")
        forward = context.forward

        def mapped(key: K, value: V) -> tuple[object]:
            return (mapper(key, value),)

        def with_bytes(mapped: object, key: object) -> MappedKey:
            return MappedKey(mapped, key, None if mapped is None else encode(mapped, ()))

        def forward_with_header(key: MappedKey, value: object, timestamp: int, headers: Headers) -> None:
            forward(key, value, timestamp, (*headers, (MAPPED_KEY, key.mapped_bytes)))

        return repartition_rows(mapped, with_bytes, context, forward_with_header, keeps_null=self.keeps_null)


@dataclass(frozen=True, slots=True)
class KeepMapped:
    """Keeps rows as ``KeepRepartitioned`` does, and takes the header off."""

    store: str

    def build(self, context: OperatorContext) -> Process:
        keep = KeepRepartitioned(self.store).build(context)

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            keep(key, value, timestamp, without_mapped_key(headers))

        return process


def without_mapped_key(headers: Headers) -> Headers:
    """The headers without the last ``mapped-key``, which is the one that was added here."""
    for at in range(len(headers) - 1, -1, -1):
        if headers[at][0] == MAPPED_KEY:
            return (*headers[:at], *headers[at + 1 :])
    return headers
