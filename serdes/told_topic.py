"""A serde that is told another topic than the one it is used for.

What Kafka Streams calls a pseudo topic: the foreign-key join writes the primary key inside a subscription as one of the
topic ``<subscription topic>-pk``, so that serdes that go by the topic (schemas in a registry) keep it apart
(``InternalTopologyBuilder.decoratePseudoTopic``, 4.3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pykstreams.core.types import Decoder, Encoder
from pykstreams.serdes.base import CompiledSerde, Serde, bind_deserializer, bind_serializer, describe, fixed_width

T = TypeVar("T")


@dataclass(frozen=True)
class ToldTopic(CompiledSerde[T], Generic[T]):
    """``inner`` is told ``topic``, or where that is ``None`` the real one, in any case with ``suffix`` behind it."""

    inner: Serde[T]
    topic: str | None = None
    suffix: str = ""

    def __repr__(self) -> str:
        return describe(self.inner)

    @property
    def width(self) -> int | None:
        return fixed_width(self.inner.serializer)

    def encoder(self, topic: str) -> Encoder:
        return bind_serializer(self.inner.serializer, self._told(topic))

    def decoder(self, topic: str) -> Decoder:
        return bind_deserializer(self.inner.deserializer, self._told(topic))

    def _told(self, topic: str) -> str:
        return (topic if self.topic is None else self.topic) + self.suffix
