"""Join of a stream with a table by a key that the stream's records refer to: there by that key, and back by their own.

On the way the value carries the bytes of the record's own key. The steps are those of a stream that is given another
key, joined, and given its own again. Beyond Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Decoder, Encoder, Headers, KeyValueMapper
from pykstreams.processors.joins.stream_table_join import StreamTableJoin
from pykstreams.processors.process import Process
from pykstreams.serdes.base import AnySerde, bind_deserializer, bind_serializer
from pykstreams.serdes.carried import Carried
from pykstreams.serdes.defaults import SerdeOrDefault, or_default

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
VO = TypeVar("VO")
VR = TypeVar("VR")

_NULL = "the value of a record, or the key that it refers to, is null"


@dataclass(frozen=True, slots=True)
class OwnKeys:
    """The own keys of a stream's records, in bytes; ``name`` tells serializers which ones.

    They are written under a topic name of their own, ``<application.id>-<name>-own-key``, for they have another schema
    than the keys of the repartition topic.
    """

    serde: SerdeOrDefault
    name: str

    def encoder(self, context: OperatorContext) -> Encoder:
        return bind_serializer(self._serde(context).serializer, self._topic(context))

    def decoder(self, context: OperatorContext) -> Decoder:
        return bind_deserializer(self._serde(context).deserializer, self._topic(context))

    def _serde(self, context: OperatorContext) -> AnySerde:
        found: AnySerde = or_default(self.serde, lambda: context.processing.key_serde)
        return found

    def _topic(self, context: OperatorContext) -> str:
        return f"{context.processing.application_id}-{self.name}-own-key"


@dataclass(frozen=True, slots=True)
class SelectForeignKey(Generic[K, V, KO]):
    """Replaces the key of every record by ``selector(key, value)``; the value carries its own one.

    A record without value is dropped, and so is one for which the selector gives ``None``, unless ``left``.
    """

    selector: KeyValueMapper[K, V, KO | None]
    own_keys: OwnKeys
    left: bool

    def build(self, context: OperatorContext) -> Process:
        selector, left, encode = self.selector, self.left, self.own_keys.encoder(context)
        forward, fail, drop = context.forward, context.fail, context.drop

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            if value is None:
                drop(_NULL)
                return
            try:
                selected = selector(key, value)
                carried = Carried(None if key is None else encode(key, headers), value)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            if selected is None and not left:
                drop(_NULL)
                return
            forward(selected, carried, timestamp, headers)

        return process


@dataclass(frozen=True, slots=True)
class JoinCarried(Generic[KO, V, VO]):
    """Does what ``join`` does with the values that carry keys: its joiner gets the bare ones, with ``with_key`` behind
    the record's own key.
    """

    join: StreamTableJoin[KO, V, KO, VO]
    own_keys: OwnKeys
    with_key: bool

    @property
    def takes_back(self) -> bool:
        """Changelogs stay behind where those of the join do."""
        return self.join.takes_back

    def build(self, context: OperatorContext) -> Process:
        join = self.join
        joiner = _with_own_key(join.joiner, self.own_keys.decoder(context)) if self.with_key else _bare(join.joiner)
        carried: StreamTableJoin[KO, V, KO, VO] = StreamTableJoin(
            join.view, joiner, join.left, buffer=join.buffer, drops_expired=join.drops_expired
        )
        return carried.build(context)


@dataclass(frozen=True, slots=True)
class SelectOwnKey:
    """Puts the key that its value carries on every record, and takes it out of the value."""

    own_keys: OwnKeys

    def build(self, context: OperatorContext) -> Process:
        decode, forward, fail = self.own_keys.decoder(context), context.forward, context.fail

        def process(key: object, value: Carried[object], timestamp: int, headers: Headers) -> None:
            try:
                own_key = None if value.key is None else decode(value.key, headers)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(own_key, value.value, timestamp, headers)

        return process


def _bare(joiner: Callable[..., VR]) -> Callable[..., Carried[VR]]:
    def join(carried: Carried[object], other: object) -> Carried[VR]:
        return Carried(carried.key, joiner(carried.value, other))

    return join


def _with_own_key(joiner: Callable[..., VR], decode: Decoder) -> Callable[..., Carried[VR]]:
    def join(carried: Carried[object], other: object) -> Carried[VR]:
        key = None if carried.key is None else decode(carried.key, ())
        return Carried(carried.key, joiner(key, carried.value, other))

    return join
