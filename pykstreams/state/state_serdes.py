"""The serdes of one store, bound to one topic: for those who write stores themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, cast

from pykstreams.core.types import Headers
from pykstreams.serdes.base import Deserializer, Serde, Serializer

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class StateSerdes(Generic[K, V]):
    """Serdes of keys and values; ``topic`` is the one they get, usually the changelog of the store.

    >>> from pykstreams.serdes import Serdes
    >>> counts = StateSerdes("app-counts-changelog", Serdes.string(), Serdes.integer())
    >>> counts.raw_key("a"), counts.value_from(counts.raw_value(7))
    (b'a', 7)
    """

    TIMESTAMP_SIZE: ClassVar[int] = 8
    BOOLEAN_SIZE: ClassVar[int] = 1

    topic: str
    key_serde: Serde[K]
    value_serde: Serde[V]

    @property
    def key_serializer(self) -> Serializer[K]:
        """The writer of the keys of the store."""
        return self.key_serde.serializer

    @property
    def key_deserializer(self) -> Deserializer[K]:
        """The reader of the keys of the store."""
        return self.key_serde.deserializer

    @property
    def value_serializer(self) -> Serializer[V]:
        """The writer of the values of the store."""
        return self.value_serde.serializer

    @property
    def value_deserializer(self) -> Deserializer[V]:
        """The reader of the values of the store."""
        return self.value_serde.deserializer

    def raw_key(self, key: K, headers: Headers | None = None) -> bytes:
        """The bytes of a key."""
        return cast("bytes", self.key_serde.serializer.serialize(self.topic, key, headers))

    def raw_value(self, value: V, headers: Headers | None = None) -> bytes:
        """The bytes of a value."""
        return cast("bytes", self.value_serde.serializer.serialize(self.topic, value, headers))

    def key_from(self, raw: bytes, headers: Headers | None = None) -> K:
        """The key of bytes."""
        return cast("K", self.key_serde.deserializer.deserialize(self.topic, raw, headers))

    def value_from(self, raw: bytes, headers: Headers | None = None) -> V:
        """The value of bytes."""
        return cast("V", self.value_serde.deserializer.deserialize(self.topic, raw, headers))
