"""The outermost layer of a key-value store: what users and operators call, with values instead of bytes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.core.record import KeyValue, ValueAndTimestamp
from pykstreams.core.types import Headers
from pykstreams.serdes.base import bind_serializer
from pykstreams.state.caching import UNSET, CachingStore
from pykstreams.state.changelog_rows import ChangelogColumns
from pykstreams.state.changelogging import record_being_processed
from pykstreams.state.engine import BytesStore, Engine, after, prefix_end
from pykstreams.state.layout import NO_TIMESTAMP, PLAIN, TIMESTAMPED, WITH_HEADERS, Layout
from pykstreams.state.rows import RowCodec, Rows, null_key, rows_of_bytes, rows_of_objects
from pykstreams.state.store import (
    ChangelogRow,
    FlushListener,
    KeyValueIterator,
    KeyValueStore,
    RawRow,
    StoreContext,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
    ValueTimestampHeaders,
)
from pykstreams.state.store_serdes import bound_codec

K = TypeVar("K")
V = TypeVar("V")

Parts: TypeAlias = tuple[Any, int, Headers]
"""Value, timestamp and headers of what a user puts."""

logger = logging.getLogger(__name__)


class Layers(NamedTuple):
    """What opening a stack gives: its highest layer below the metered one, and the cache, which is that layer."""

    top: BytesStore
    cache: CachingStore | None


class MeteredKeyValueStore(KeyValueStore[K, V]):
    """A key-value store as it is handed out; ``open_layers`` opens what lies below it."""

    layout: Layout = PLAIN

    def __init__(
        self,
        name: str,
        key_serde: Any,
        value_serde: Any,
        engine: Engine,
        open_layers: Callable[[StoreContext, RowCodec], Layers],
    ) -> None:
        self._name = name
        self._serdes = key_serde, value_serde
        self._engine = engine
        self._open_layers = open_layers
        self._open = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def persistent(self) -> bool:
        return self._engine.persistent

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def uncommitted_bytes(self) -> int:
        """About how many bytes wait for the next commit, those in the cache apart."""
        return self._engine.uncommitted_bytes

    def init(self, context: StoreContext) -> None:
        codec = bound_codec(self._name, *self._serdes, self.layout, context)
        layers = self._open_layers(context, codec)
        self._codec = codec
        self._current = context.current
        self._top, self._cache = layers.top, layers.cache
        if layers.cache is not None and self.layout is TIMESTAMPED:
            rows = rows_of_objects(layers.cache, codec, self._name)
        else:
            rows = rows_of_bytes(layers.top, codec, self._name)
        self.get_row, self.put_row, self.take_row, self.keep_row = rows
        self._open = True

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._engine.write(self.layout.restored(ChangelogColumns.of(rows)))

    def end_restore(self) -> None:
        self._engine.end_restore()

    def flush_cache(self) -> None:
        if self._cache is not None:
            self._cache.flush()

    def commit(self, changelog_offset: int | None) -> None:
        self._engine.commit(changelog_offset)

    def committed_offset(self) -> int | None:
        return self._engine.committed_offset()

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        closed = self._closed
        self.get_row, self.put_row, self.take_row, self.keep_row = Rows(closed, closed, closed, closed)
        if self._cache is not None:
            self._cache.close()
        self._engine.close()

    def on_flush(self, listener: FlushListener, send_old_values: bool) -> bool:
        if self._cache is None:
            return False
        codec, current, name = self._codec, self._current, self._name
        decode_key, decode_row = codec.decode_key, codec.decoder()

        def forward(key: bytes, packed: bytes | None, old: bytes | None, value: Any, timestamp: int) -> None:
            _, record_time, headers = record_being_processed(current, name)
            if packed is None:
                value, timestamp = None, record_time
            elif value is UNSET:
                value, timestamp = decode_row(packed)
                if timestamp == NO_TIMESTAMP:
                    timestamp = record_time
            old_value = None if old is None else decode_row(old)[0]
            listener(decode_key(key, ()), value, old_value, timestamp, headers)

        self._cache.on_flush(forward, send_old_values)
        return True

    def raw_rows(self) -> Iterator[RawRow]:
        """Every row as it is kept, without what only the cache knows until it is flushed."""
        self._check_open()
        unpack, keeps_time = self.layout.unpack, self.layout is not PLAIN
        for key, packed in self._engine.scan(None, None, False):
            value, timestamp, headers = unpack(packed)
            yield key, value, (timestamp if keeps_time else None), headers

    def get(self, key: K, default: Any = None) -> Any:
        packed = self._top.get(self._raw_key(key))
        return default if packed is None else self._value(packed)

    def put(self, key: K, value: V | None) -> None:
        raw = self._raw_key(key)
        self._top.put(raw, self._packed(value))

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        old = cast("V | None", self.get(key))
        if old is None:
            self.put(key, value)
        return old

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        rows = list(entries)
        for key, _ in rows:
            if key is None:
                raise null_key(self._name)
        for key, value in rows:
            self.put(key, value)

    def delete(self, key: K) -> V | None:
        raw = self._raw_key(key)
        packed = self._top.get(raw)
        self._top.put(raw, None)
        return None if packed is None else self._value(packed)

    def range(self, lower: K | None = None, upper: K | None = None, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        first = None if lower is None else self._raw_key(lower)
        last = None if upper is None else self._raw_key(upper)
        if first is not None and last is not None and first > last:
            logger.warning(
                "range of store %r from %r to %r is empty: the first key is greater as serialized bytes; swap them, "
                "or use a serde that keeps the order (built-in numbers do not for negative ones)",
                self._name,
                lower,
                upper,
            )
            return self._iterator(iter(()))
        return self._iterator(self._scan(first, None if last is None else after(last), reverse))

    def all(self, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        return self._iterator(self._scan(None, None, reverse))

    def prefix_scan(self, prefix: Any, prefix_serializer: Any) -> KeyValueIterator[K, V]:
        if prefix is None:
            raise TypeError(f"the prefix for store {self._name!r} is None; use all() for every row")
        raw = bind_serializer(prefix_serializer, self._name)(prefix, ())
        if raw is None:
            raise TypeError(f"the prefix {prefix!r} for store {self._name!r} was serialized to None")
        return self._iterator(self._scan(raw, prefix_end(raw), False))

    def approximate_num_entries(self) -> int:
        self._check_open()
        return self._engine.approximate_num_entries()

    def _scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        self._check_open()
        return self._top.scan(lower, upper, reverse)

    def _iterator(self, rows: Iterator[tuple[bytes, bytes]]) -> KeyValueIterator[K, V]:
        decode_key, value = self._codec.decode_key, self._value

        def row(key: bytes, packed: bytes) -> KeyValue[K, V]:
            return KeyValue(decode_key(key, ()), value(packed))

        return KeyValueIterator(rows, row, self._name)

    def _raw_key(self, key: Any) -> bytes:
        if not self._open:
            self._closed()
        if key is None:
            raise null_key(self._name)
        return self._codec.encode_key(key, ())

    def _packed(self, value: Any) -> bytes | None:
        if value is None:
            return None
        plain, timestamp, headers = self._parts(value)
        data = None if plain is None else self._codec.encode_value(plain, headers)
        return None if data is None else self.layout.pack(data, timestamp, headers)

    def _value(self, packed: bytes) -> Any:
        """What a user gets for a packed value."""
        return self._codec.decode_value(packed, ())

    def _parts(self, value: Any) -> Parts:
        """What a user put, taken apart."""
        return value, NO_TIMESTAMP, ()

    def _check_open(self) -> None:
        if not self._open:
            self._closed()

    def _closed(self, *_: Any) -> Any:
        raise InvalidStateStoreError(
            f"store {self._name!r} is not open: it belongs to a task that was closed, moved, or not yet started; "
            "ask the context for the store again"
        )


class MeteredTimestampedKeyValueStore(MeteredKeyValueStore[K, ValueAndTimestamp[V]], TimestampedKeyValueStore[K, V]):
    """A key-value store with timestamps."""

    layout = TIMESTAMPED

    def _value(self, packed: bytes) -> Any:
        value, timestamp, _ = self.layout.unpack(packed)
        return ValueAndTimestamp(self._codec.decode_value(value, ()), timestamp)

    def _parts(self, value: Any) -> Parts:
        if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int)):
            raise TypeError(
                f"store {self._name!r} keeps timestamps and was given {value!r}; put "
                "ValueAndTimestamp(value, timestamp in ms)"
            )
        return value[0], value[1], ()


class MeteredTimestampedKeyValueStoreWithHeaders(
    MeteredKeyValueStore[K, ValueTimestampHeaders[V]], TimestampedKeyValueStoreWithHeaders[K, V]
):
    """A key-value store with timestamps and headers."""

    layout = WITH_HEADERS

    def _value(self, packed: bytes) -> Any:
        value, timestamp, headers = self.layout.unpack(packed)
        return ValueTimestampHeaders(self._codec.decode_value(value, headers), timestamp, headers)

    def _parts(self, value: Any) -> Parts:
        if not (isinstance(value, ValueTimestampHeaders) and isinstance(value.timestamp, int)):
            raise TypeError(
                f"store {self._name!r} keeps timestamps and headers and was given {value!r}; put "
                "ValueTimestampHeaders(value, timestamp in ms, headers)"
            )
        return value
