"""Envelopes of the foreign-key join (``SubscriptionWrapperSerde`` and its response, 4.3.1)::

    subscription   {no hash: 1 bit, version: 7 bits}{instruction: 1}[{hash: 16}]{primary key}[{partition: 4}]
    response       {no hash: 1 bit, version: 7 bits}[{hash: 16}]{value}

A hash is the 16 bytes of ``core.hashing.murmur3_128``. A subscription of version 1, the current one, ends
with the partition of the primary key; version 0 has none. A response is of version 0, and one without value
bytes has no value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.serdes.base import (
    CompiledSerde,
    EncoderOf,
    Serde,
    bind_deserializer,
    bind_serializer,
    refused_bytes,
    refused_value,
)

K = TypeVar("K")
V = TypeVar("V")

_NO_HASH = 0x80
_VERSION = 0x7F
_HASH_SIZE = 16
_HEAD_AND_HASH = struct.Struct(">BB16s")
_PARTITION = struct.Struct(">i")
_SUBSCRIPTION_VERSIONS = (0, 1)

SUBSCRIPTION_VERSION: Final = 1
"""That of the subscriptions that are sent."""


class Instruction(IntEnum):
    """The instruction of a subscription to the side of the foreign key."""

    DELETE_KEY_NO_PROPAGATE = 0
    """Forget the subscription, answer nothing."""
    DELETE_KEY_AND_PROPAGATE = 1
    """Forget the subscription, answer with no value."""
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    """Keep it, and answer with the value or with none."""
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3
    """Keep it, and answer only if there is a value."""


_INSTRUCTIONS: Final = tuple(Instruction)  # by their numbers


class SubscriptionWrapper(NamedTuple, Generic[K]):
    """A row of the left table asking for the value of its foreign key."""

    hash: bytes | None
    instruction: Instruction
    primary_key: K
    primary_partition: int | None
    version: int = SUBSCRIPTION_VERSION


class SubscriptionResponseWrapper(NamedTuple, Generic[V]):
    """The answer: the hash of the left value that asked, and the foreign value.

    The partition of the primary key says where the answer goes and is not written.
    """

    hash: bytes | None
    value: V | None
    primary_partition: int | None = None


_Subscription: TypeAlias = tuple[bytes | None, Instruction, object, int | None, int]
_Response: TypeAlias = tuple[bytes | None, object, int | None]

subscription_of: Final[Callable[[_Subscription], SubscriptionWrapper[object]]] = partial(
    tuple.__new__, SubscriptionWrapper
)
"""Makes a subscription of a tuple of all its fields, in two thirds of the time that calling the class takes."""

response_of: Final[Callable[[_Response], SubscriptionResponseWrapper[object]]] = partial(
    tuple.__new__, SubscriptionResponseWrapper
)
"""Makes a response of a tuple of all its fields, likewise."""


@dataclass(frozen=True)
class SubscriptionWrapperSerde(CompiledSerde[SubscriptionWrapper[K]], Generic[K]):
    """Subscriptions; the primary key is written by the inner serde."""

    primary_key: Serde[K]

    def encoder(self, topic: str) -> EncoderOf[SubscriptionWrapper[K]]:
        return encode_subscription(bind_serializer(self.primary_key.serializer, topic), topic)

    def decoder(self, topic: str) -> Decoder:
        return decode_subscription(bind_deserializer(self.primary_key.deserializer, topic), topic)


@dataclass(frozen=True)
class SubscriptionResponseWrapperSerde(CompiledSerde[SubscriptionResponseWrapper[V]], Generic[V]):
    """Answers to subscriptions; the foreign value is written by the inner serde."""

    value: Serde[V]

    def encoder(self, topic: str) -> EncoderOf[SubscriptionResponseWrapper[V]]:
        inner = bind_serializer(self.value.serializer, topic)

        def encode(data: SubscriptionResponseWrapper[V] | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            try:
                digest, value, _ = data
                raw = b"" if value is None else inner(value, headers) or b""
                return response_bytes(None if digest is None else _checked(digest), raw)
            except (TypeError, ValueError) as error:
                why = f"expected a SubscriptionResponseWrapper: {error}"
                raise refused_value(repr(self), topic, data, why) from error

        return encode

    def decoder(self, topic: str) -> Decoder:
        inner = bind_deserializer(self.value.deserializer, topic)

        def decode(data: bytes | None, headers: Headers) -> SubscriptionResponseWrapper[object] | None:
            if data is None:
                return None
            try:
                version, digest, start = _head(data, 1)
                if version != 0:
                    raise ValueError(f"its version is {version}; expected 0")
            except (IndexError, ValueError, TypeError) as error:
                raise refused_bytes(repr(self), topic, data, f"no response: {error}") from error
            value = inner(data[start:], headers) if start < len(data) else None
            return response_of((digest, value, None))

        return decode


def response_bytes(digest: bytes | None, value: bytes) -> bytes:
    """Returns the bytes of a response with a value that is serialized; no value has no bytes."""
    return b"\x80" + value if digest is None else b"\x00" + digest + value


def encode_subscription(primary_key: Encoder, topic: str) -> EncoderOf[_Subscription]:
    """Binds an encoder of primary keys to one of subscriptions."""
    pack_head, pack_partition = _HEAD_AND_HASH.pack, _PARTITION.pack

    def encode(data: _Subscription | None, headers: Headers) -> bytes | None:
        if data is None:
            return None
        try:
            digest, instruction, key, partition, version = data
            if version not in _SUBSCRIPTION_VERSIONS:
                raise ValueError(f"its version is {version!r}; expected 0 or 1")
            if digest is None:
                head = bytes((version | _NO_HASH, instruction))
            else:
                head = pack_head(version, instruction, _checked(digest))
            raw: bytes = primary_key(key, headers)  # type: ignore[assignment]  # no bytes are refused below
            return head + raw + pack_partition(partition) if version else head + raw
        except (TypeError, ValueError, struct.error) as error:
            why = f"expected a SubscriptionWrapper with a primary key: {error}"
            raise refused_value("SubscriptionWrapperSerde", topic, data, why) from error

    return encode


def decode_subscription(primary_key: Decoder, topic: str) -> Decoder:
    """Binds a decoder of primary keys to one of subscriptions."""
    unpack_partition, instructions = _PARTITION.unpack_from, _INSTRUCTIONS

    def decode(data: bytes | None, headers: Headers) -> SubscriptionWrapper[object] | None:
        if data is None:
            return None
        try:
            version, digest, start = _head(data, 2)
            instruction = instructions[data[1]] if data[1] < len(instructions) else Instruction(data[1])
            if version not in _SUBSCRIPTION_VERSIONS:
                raise ValueError(f"its version is {version}; expected 0 or 1")
            end = len(data) - 4 if version else len(data)
            if end < start:
                raise ValueError(f"{len(data) - start} bytes are left for key and partition")
            partition = unpack_partition(data, end)[0] if version else None
        except (IndexError, ValueError, TypeError) as error:
            why = f"no subscription: {error}"
            raise refused_bytes("SubscriptionWrapperSerde", topic, data, why) from error
        return subscription_of((digest, instruction, primary_key(data[start:end], headers), partition, version))

    return decode


def subscription_source(data: bytes) -> tuple[bytes | None, int | None]:
    """Reads of a subscription only what an answer needs: hash and partition of the primary key."""
    version = data[0] & _VERSION
    digest = None if data[0] & _NO_HASH else data[2 : 2 + _HASH_SIZE]
    return digest, _PARTITION.unpack(data[-4:])[0] if version else None


def primary_key_bytes(data: bytes) -> bytes:
    """Returns the primary key of a subscription as it stands there."""
    start = 2 if data[0] & _NO_HASH else 2 + _HASH_SIZE
    return data[start:-4] if data[0] & _VERSION else data[start:]


def _head(data: bytes, hash_start: int) -> tuple[int, bytes | None, int]:
    """Returns version, hash and the position behind them."""
    first = data[0]
    if first & _NO_HASH:
        return first & _VERSION, None, hash_start
    end = hash_start + _HASH_SIZE
    if len(data) < end:
        raise ValueError(f"its hash wants {_HASH_SIZE} bytes, {max(len(data) - hash_start, 0)} are left")
    return first, data[hash_start:end], end


def _checked(digest: bytes) -> bytes:
    if len(digest) != _HASH_SIZE:
        raise ValueError(f"its hash has {len(digest)} bytes; expected {_HASH_SIZE}")
    return digest
