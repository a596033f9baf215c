"""``Serdes``: the factories of the built-in serdes, named like Kafka's in lower case."""

from __future__ import annotations

import builtins
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Generic, TypeVar, cast, overload

from pykstreams.core.types import Decoder, Duration, Encoder
from pykstreams.core.windows import Windowed
from pykstreams.serdes.base import (
    AnySerde,
    CompiledDeserializer,
    CompiledSerializer,
    Deserializer,
    Serde,
    Serializer,
    bind_deserializer,
    bind_serializer,
    describe,
)
from pykstreams.serdes.by_type import TYPES, SerdeOrType, inner_serde
from pykstreams.serdes.list_serde import ListSerde
from pykstreams.serdes.primitives import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UUIDSerde,
    VoidSerde,
)
from pykstreams.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde

T = TypeVar("T")


class Serdes:
    """Built-in serdes; each has the bytes of its namesake in Kafka.

    >>> Serdes.long().serializer.serialize("topic", 5)
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05'
    """

    @staticmethod
    def string(encoding: str = "utf-8") -> Serde[str]:
        """Text."""
        return StringSerde(encoding)

    @staticmethod
    def short() -> Serde[int]:
        """2-byte integers."""
        return ShortSerde()

    @staticmethod
    def integer() -> Serde[int]:
        """4-byte integers."""
        return IntegerSerde()

    @staticmethod
    def long() -> Serde[int]:
        """8-byte integers."""
        return LongSerde()

    @staticmethod
    def float() -> Serde[builtins.float]:
        """4-byte floating-point numbers."""
        return FloatSerde()

    @staticmethod
    def double() -> Serde[builtins.float]:
        """8-byte floating-point numbers."""
        return DoubleSerde()

    @staticmethod
    def boolean() -> Serde[bool]:
        """``True`` and ``False``, one byte."""
        return BooleanSerde()

    @staticmethod
    def bytes() -> Serde[builtins.bytes]:
        """Bytes as they are."""
        return BytesSerde()

    @staticmethod
    def uuid() -> Serde[uuid.UUID]:
        """UUIDs as text."""
        return UUIDSerde()

    @staticmethod
    def void() -> Serde[None]:
        """Nothing but ``None``."""
        return VoidSerde()

    @staticmethod
    def list(inner: SerdeOrType[T]) -> Serde[builtins.list[T | None]]:
        """Lists of what the inner serde takes, or of values of a type."""
        return ListSerde(inner_serde(inner, is_key=False))

    @overload
    @staticmethod
    def for_type(type_: type[T], *, is_key: bool = False) -> Serde[T]: ...

    @overload
    @staticmethod
    def for_type(type_: object, *, is_key: bool = False) -> AnySerde: ...

    @staticmethod
    def for_type(type_: object, *, is_key: bool = False) -> AnySerde:
        """Returns the serde for a Python type: str, bytes, int (long), float (double), bool, UUID or NoneType, or any
        other that may stand for a serde (docs/guides/types.md).

        With ``is_key`` equal values have equal bytes, as keys must; where the DSL, stores and tests are given it for
        keys, it is so in any case.

        Raises ``TypeError`` for one that has none. Type checkers do not know what a union, an ``Annotated[...]`` or a
        ``NewType`` is as an argument, so say it of the result: ``IDS: Serde[int | str] = Serdes.for_type(int | str)``.

        >>> Serdes.for_type(int), Serdes.for_type(list[int])
        (LongSerde(), JsonSerde(list))
        """
        simple = _BY_TYPE.get(type_) if isinstance(type_, type) and not TYPES.is_registered(type_) else None
        return TYPES.serde(cast("type[object]", type_), is_key=is_key) if simple is None else simple

    @staticmethod
    def from_functions(
        serializer: Serializer[T] | Callable[[T], builtins.bytes],
        deserializer: Deserializer[T] | Callable[[builtins.bytes], T],
    ) -> Serde[T]:
        """Makes a serde of a serializer and a deserializer, or of functions, which never get ``None``.

        >>> serde = Serdes.from_functions(lambda number: b"%d" % number, int)
        >>> serde.deserializer.deserialize("topic", serde.serializer.serialize("topic", 42))
        42
        """
        return _SerdeOfTwo(
            cast("Serializer[T]", serializer) if hasattr(serializer, "serialize") else FunctionSerializer(serializer),
            cast("Deserializer[T]", deserializer)
            if hasattr(deserializer, "deserialize")
            else FunctionDeserializer(deserializer),
        )


class WindowedSerdes:
    """Factories of serdes for windowed keys; the type of the keys may stand for their serde.

    >>> WindowedSerdes.session_windowed(str)
    SessionWindowedSerde(inner=StringSerde(encoding='utf-8'))
    """

    @staticmethod
    def time_windowed(inner: SerdeOrType[T], window_size: Duration) -> Serde[Windowed[T]]:
        """Returns the serde for keys inside time windows of that size."""
        return TimeWindowedSerde(inner_serde(inner, is_key=True), window_size)

    @staticmethod
    def session_windowed(inner: SerdeOrType[T]) -> Serde[Windowed[T]]:
        """Returns the serde for keys inside sessions."""
        return SessionWindowedSerde(inner_serde(inner, is_key=True))


@dataclass(frozen=True)
class FunctionSerializer(CompiledSerializer[T], Generic[T]):
    """A function ``data -> bytes`` as serializer."""

    function: Callable[[T], bytes]

    def encoder(self, topic: str) -> Encoder:
        return bind_serializer(self.function, topic)

    def __repr__(self) -> str:
        return describe(self.function)


@dataclass(frozen=True)
class FunctionDeserializer(CompiledDeserializer[T], Generic[T]):
    """A function ``bytes -> data`` as deserializer."""

    function: Callable[[bytes], T]

    def decoder(self, topic: str) -> Decoder:
        return bind_deserializer(self.function, topic)

    def __repr__(self) -> str:
        return describe(self.function)


@dataclass(frozen=True)
class _SerdeOfTwo(Generic[T]):
    """A serializer and a deserializer side by side."""

    serializer: Serializer[T]
    deserializer: Deserializer[T]


_BY_TYPE: dict[type, AnySerde] = {
    str: StringSerde(),
    bytes: BytesSerde(),
    int: LongSerde(),
    float: DoubleSerde(),
    bool: BooleanSerde(),
    uuid.UUID: UUIDSerde(),
    NoneType: VoidSerde(),
}
