"""The base of the outermost layers of all kinds of stores: serdes, the stack below, commits, flushes."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeVar

from pykstreams.core.handlers import only_fails
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.serdes.base import write_same_bytes
from pykstreams.state.encoding.layout import NO_TIMESTAMP, TIMESTAMPED
from pykstreams.state.interfaces.engine import BytesStore, Engine
from pykstreams.state.interfaces.operator_stores import LastPut, SerializedRows
from pykstreams.state.interfaces.position import Position, PositionBound, PositionOf
from pykstreams.state.interfaces.query_results import QueryConfig, QueryResult
from pykstreams.state.interfaces.store import FlushListener, StoreContext, TaskStore
from pykstreams.state.layers.cache_entries import UNSET
from pykstreams.state.layers.cache_flush import Send, Straight, straight
from pykstreams.state.layers.caching import CachingStore
from pykstreams.state.layers.changelogging import record_being_processed
from pykstreams.state.layers.engine_store import EngineStore
from pykstreams.state.layers.public_values import public_values
from pykstreams.state.layers.rows import RowCodec, null_key
from pykstreams.state.layers.store_serdes import bound_codec
from pykstreams.state.metrics.store_metrics import StoreMetrics
from pykstreams.state.queries.answers import answered

if TYPE_CHECKING:
    from pykstreams.state.interfaces.query import Query

log = logging.getLogger(__name__)

R = TypeVar("R")

_OF_EVERY_STORE: Final = {"flush_cache": "flush", "commit": "commit", "restore": "restore"}


class Layers(NamedTuple):
    """An opened stack: its highest layer below the metered one, and the cache, which is that layer."""

    top: BytesStore
    cache: CachingStore | None


@dataclass(frozen=True, slots=True)
class StoreParts:
    """The parts of which a store is made; ``open_layers`` opens what lies below its outermost layer."""

    name: str
    key_serde: object
    value_serde: object
    engine: Engine
    open_layers: Callable[[StoreContext, RowCodec], Layers]


class MeteredStore(EngineStore):
    """A store as it is handed out.

    Its metrics are those of a whole store, as users and operators see it: a get may be answered by the record cache.
    """

    operations: ClassVar[Mapping[str, str]] = {}
    """The methods that are measured, and under which names; the closures of operators included."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts.name, parts.engine)
        self._serdes = parts.key_serde, parts.value_serde
        self._open_layers = parts.open_layers
        self._position_of: PositionOf = _unknown

    def init(self, context: StoreContext, root: TaskStore | None = None) -> None:
        codec = bound_codec(self._name, *self._serdes, self.layout, context)
        layers = self._open_layers(context, codec)
        self._codec = codec
        self._current = context.current
        self._partition = context.task_id.partition
        self._top, self._cache = layers.top, layers.cache
        self._shown, self._packed = public_values(codec, self._name)
        self._metrics = StoreMetrics(context, self.metrics_scope, self._name)
        if self._cache is not None:
            config = context.config
            if not only_fails(config.processing_exception_handler, config.errors_dead_letter_queue_topic_name):
                self._cache.serialize_at_once()
            if self._metrics.measures_calls:
                self._cache.count_hits(self._metrics)
        self._make_closures()
        self._open = True
        self._metrics.describe(self._engine, lambda: self._engine.approximate_num_entries() if self._open else 0)
        if self._metrics.measures_calls:
            self._metrics.measure(self, {**_OF_EVERY_STORE, **self.operations})

    @property
    def cache_bytes(self) -> int:
        return 0 if self._cache is None else self._cache.size_bytes

    def flush_metrics(self, now_ms: int) -> None:
        self._metrics.flush(now_ms)

    def flush_cache(self) -> None:
        if self._cache is not None:
            self._cache.flush()

    def evict_eldest(self) -> bool:
        return self._cache is not None and self._cache.evict_eldest()

    def _leave_task(self) -> None:
        if not self._open:
            return
        super()._leave_task()
        for measured in (*_OF_EVERY_STORE, *self.operations):
            self.__dict__.pop(measured, None)
        self._close_closures()
        if self._cache is not None:
            self._cache.close()

    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        """Returns whether the store has a cache; then the listener is called for what leaves it."""
        if self._cache is None:
            return False
        current, name = self._current, self._name
        decode_key, decode_row = self._flushed_key(), self._codec.decoder()

        def forward(key: bytes, packed: bytes | None, old: bytes | None, value: object, timestamp: int) -> None:
            message, record_time, headers = current.raw or record_being_processed(current, name)
            if packed is None:
                value, timestamp = None, record_time
            elif value is UNSET:
                value, timestamp = decode_row(packed)
                if timestamp == NO_TIMESTAMP:
                    timestamp = record_time
            if timestamp != record_time:
                current.raw = (message, timestamp, headers)
            listener(decode_key(key), (value, None if old is None else decode_row(old)[0], True), timestamp, headers)

        self._cache.on_flush(forward, send_old_values, None if send_old_values else self._straight_to(sink))
        return True

    def last_put(self, sink: SerializedSink) -> LastPut | None:
        """Returns ``None``: most kinds of stores take no note of it."""
        return None

    def _straight_to(self, sink: SerializedSink | None) -> Straight | None:
        """The way of what leaves the cache into a sink that would write the very bytes that the store has."""
        if sink is None:
            return None
        key = self._key_as_written_by(sink.key_serializer)
        if key is None or not write_same_bytes(self._codec.value_serializer, sink.value_serializer):
            return None
        return self._straight(key, sink.send)

    def _straight(self, key_part: slice, send: Send) -> Straight | None:
        """The way of rows of this layout; ``None`` for one without such a way."""
        return partial(straight, key_part, send) if self.layout is TIMESTAMPED else None

    def _key_as_written_by(self, serializer: object) -> slice | None:
        """Where in a key of the cache the bytes are that a serializer writes for what the listener of a flush gets."""
        return None

    def serialized_below_cache(self, key_serializer: object, value_serializer: object) -> SerializedRows | None:
        """Returns ``None``: rows of most kinds of stores are more than a value and its timestamp."""
        return None

    def query(self, query: Query[R], position_bound: PositionBound, config: QueryConfig) -> QueryResult[R]:
        partition = self._partition if self._open else None
        return answered(self, self._answer, query, position_bound, config, self._position_of, partition)

    @property
    def position(self) -> Position:
        return self._position_of() if self._open else Position()

    def set_position_source(self, position_of: PositionOf) -> None:
        self._position_of = position_of

    @abstractmethod
    def _answer(self, query: Query[object]) -> object:
        """Finds what a query asks for, or ``NO_ANSWER`` where stores of this kind cannot."""

    @abstractmethod
    def _make_closures(self) -> None:
        """Makes what operators call, over the layers just opened."""

    @abstractmethod
    def _close_closures(self) -> None:
        """Replaces what operators call by ``_closed``."""

    @abstractmethod
    def _flushed_key(self) -> Callable[[bytes], object]:
        """Makes the function from a key of the cache to what the listener of a flush gets."""

    def _is_empty(self, first: bytes | None, last: bytes | None, key_from: object, key_to: object) -> bool:
        """Whether a range has no keys since its ends are the wrong way round; warns of that."""
        if first is None or last is None or first <= last:
            return False
        log.warning(
            "the range of store %r from %r to %r is empty: the first key is greater as serialized bytes; swap them, or "
            "use a serde that keeps the order (built-in numbers do not for negative ones)",
            self._name,
            key_from,
            key_to,
        )
        return True

    def _raw_key(self, key: object) -> bytes:
        if not self._open:
            self._closed()
        if key is None:
            raise null_key(self._name)
        return self._codec.encode_key(key, ())


def _unknown(*, below_cache: bool = False) -> Position:
    return Position()
