"""The outermost layer of a window store: what users and operators call, with values instead of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

from pykstreams.core.record import KeyValue, ValueAndTimestamp
from pykstreams.core.types import Timestamp, timestamp_ms
from pykstreams.core.windows import Windowed
from pykstreams.serdes.base import write_same_bytes
from pykstreams.serdes.windowed import TimeWindowedSerializer
from pykstreams.state.encoding.changelog_rows import ChangelogColumns
from pykstreams.state.encoding.composed_keys import KEY_AND_START, LAST_TIME, PREFIX_BYTES, WindowKeySchema
from pykstreams.state.encoding.layout import PLAIN, TIMESTAMPED, WITH_HEADERS
from pykstreams.state.engines.segments import SegmentedEngine
from pykstreams.state.interfaces.engine import Row
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.store import ChangelogRow, KeyValueIterator, ValueTimestampHeaders
from pykstreams.state.interfaces.window_store import (
    RawWindowRow,
    TimestampedWindowStore,
    TimestampedWindowStoreWithHeaders,
    WindowStore,
    WindowStoreIterator,
)
from pykstreams.state.layers.metered_store import MeteredStore, StoreParts
from pykstreams.state.windows.answers import answer
from pykstreams.state.windows.duplicates import RetainedDuplicates
from pykstreams.state.windows.reads import WindowReads
from pykstreams.state.windows.rows import (
    negative_start,
    rows_between,
    rows_of_bytes,
    rows_of_key,
    rows_of_objects,
    windowed_key,
)

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class WindowParts(StoreParts):
    """The parts of which a window store is made.

    :param size_ms: the length of its windows, for the keys that are returned.
    :param interval_ms: how long its segments are.
    :param by_key: see ``WindowReads``.
    :param duplicates: keeps duplicates, for a store that retains them; ``raw_rows`` shows no timestamps then, since
        joins keep them as starts.
    """

    engine: SegmentedEngine
    schema: WindowKeySchema
    size_ms: int
    interval_ms: int
    by_key: bool = False
    duplicates: RetainedDuplicates | None = None


class MeteredWindowStore(MeteredStore, WindowStore[K, V]):
    """A window store as it is handed out."""

    logged_from = PREFIX_BYTES
    operations: ClassVar[Mapping[str, str]] = {
        "put": "put",
        "put_row": "put",
        "keep_row": "put",
        "get_row": "fetch",
        "take_row": "fetch",
        "rows": "fetch",
        "rows_between": "fetch",
        "fetch_one": "fetch",
        "fetch": "fetch",
        "fetch_range": "fetch",
        "fetch_all": "fetch",
        "all": "fetch",
    }

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts)
        self._segments = parts.engine
        self._schema = parts.schema
        self._size_ms = parts.size_ms
        self._interval_ms = parts.interval_ms
        self._by_key = parts.by_key
        self._duplicates = parts.duplicates

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        columns = ChangelogColumns.of(rows)
        keys: Sequence[bytes] = self._schema.composed(columns.keys)
        if self._duplicates is not None:
            keys = self._duplicates.restored(keys)
        self._engine.write(self.layout.restored(columns.with_keys(keys)))
        self._tell_cache()

    def _tell_cache(self) -> None:
        if self._cache is not None:
            self._cache.knows_below(self._segments.last_there)

    def _answer(self, query: Query[object]) -> object:
        return answer(self, query)

    def _make_closures(self) -> None:
        self._tell_cache()
        codec, schema, name = self._codec, self._schema, self._name
        self._reads = WindowReads(
            self._top, self._cache, self._segments, schema, self._interval_ms, by_key=self._by_key
        )
        self._windowed = windowed_key(codec, schema, self._size_ms)
        if self._cache is not None and self.layout is TIMESTAMPED:
            rows = rows_of_objects(self._cache, codec, schema, name)
        else:
            rows = rows_of_bytes(self._top, codec, schema, name)
        self.get_row, self.put_row, self.take_row, self.keep_row = rows
        self.rows = rows_of_key(self._reads, codec, schema, name)
        self.rows_between = rows_between(self._reads, codec, self._windowed)

    def reader_below_cache(self) -> Callable[[object, int], tuple[object, int] | None]:
        """Makes the reader of rows as they were last flushed, which is as they were last forwarded."""
        if self._cache is None:
            return self.get_row
        return rows_of_bytes(self._cache.below, self._codec, self._schema, self._name).get_row

    def _close_closures(self) -> None:
        closed: Any = self._closed
        self.get_row = self.put_row = self.take_row = self.keep_row = closed
        self.rows = self.rows_between = closed

    def _flushed_key(self) -> Callable[[bytes], object]:
        return self._windowed

    def _key_as_written_by(self, serializer: object) -> slice | None:
        if type(serializer) is not TimeWindowedSerializer:
            return None
        return KEY_AND_START if write_same_bytes(self._codec.key_serializer, serializer.inner) else None

    @property
    def observed_time(self) -> int:
        return self._segments.observed_time

    def advance(self, time: int) -> None:
        self._segments.advance(time)

    def raw_rows(self) -> Iterator[RawWindowRow]:
        """Every row as it is kept, without what only the cache knows until it is flushed."""
        self._check_open()
        unpack, unpack_key = self.layout.unpack, self._schema.unpack
        keeps_time = self.layout is not PLAIN and self._duplicates is None
        for composed, packed in self._engine.scan(None, None, False):
            key, start, _ = unpack_key(composed)
            value, timestamp, headers = unpack(packed)
            yield RawWindowRow(key, start, value, timestamp if keeps_time else None, headers)

    def put(self, key: K, value: V | None, window_start: Timestamp) -> None:
        raw = self._raw_key(key)
        start = timestamp_ms(window_start, "window start")
        if start < 0:
            raise negative_start(self._name, start)
        self._top.put(self._schema.pack(raw, start), self._packed(value))

    def fetch_one(self, key: K, window_start: Timestamp) -> V | None:
        raw = self._raw_key(key)
        packed = self._top.get(self._schema.pack(raw, timestamp_ms(window_start, "window start")))
        return None if packed is None else cast("V", self._shown(packed))

    def fetch(
        self, key: K, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> WindowStoreIterator[V]:
        raw = self._raw_key(key)
        found = self._reads.of_key(raw, *_span(time_from, time_to), reverse)
        time_of, shown = self._schema.time_of, self._shown

        def row(composed: bytes, packed: bytes) -> KeyValue[int, V]:
            return KeyValue(time_of(composed), shown(packed))

        return WindowStoreIterator(found, row, self._name)

    def fetch_range(
        self,
        key_from: K | None,
        key_to: K | None,
        time_from: Timestamp,
        time_to: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], V]:
        first = None if key_from is None else self._raw_key(key_from)
        last = None if key_to is None else self._raw_key(key_to)
        span = _span(time_from, time_to)
        if self._is_empty(first, last, key_from, key_to):
            return self._iterator(iter(()))
        self._check_open()
        return self._iterator(self._reads.of_range(first, last, *span, reverse))

    def fetch_all(
        self, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], V]:
        self._check_open()
        return self._iterator(self._reads.of_all(*_span(time_from, time_to), reverse))

    def all(self, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], V]:
        self._check_open()
        return self._iterator(self._reads.of_all(0, LAST_TIME, reverse))

    def _iterator(self, rows: Iterator[Row]) -> KeyValueIterator[Windowed[K], V]:
        windowed, shown = self._windowed, self._shown

        def row(composed: bytes, packed: bytes) -> KeyValue[Windowed[K], V]:
            return KeyValue(windowed(composed), shown(packed))

        return KeyValueIterator(rows, row, self._name)


class MeteredTimestampedWindowStore(MeteredWindowStore[K, ValueAndTimestamp[V]], TimestampedWindowStore[K, V]):
    """A window store with timestamps."""

    layout = TIMESTAMPED


class MeteredTimestampedWindowStoreWithHeaders(
    MeteredWindowStore[K, ValueTimestampHeaders[V]], TimestampedWindowStoreWithHeaders[K, V]
):
    """A window store with timestamps and headers."""

    layout = WITH_HEADERS


def _span(time_from: Timestamp, time_to: Timestamp) -> tuple[int, int]:
    return timestamp_ms(time_from, "time_from"), timestamp_ms(time_to, "time_to")
