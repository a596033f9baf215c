"""The outermost layer of a key-value store: what users and operators call, with values instead of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar, cast

from pykstreams.core.errors import SerdeError
from pykstreams.core.record import KeyValue, ValueAndTimestamp
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.serdes.base import bind_serializer, write_same_bytes
from pykstreams.serdes.by_type import SerdeOrType, given_serde
from pykstreams.state.encoding.layout import PLAIN, TIMESTAMP, TIMESTAMPED, WITH_HEADERS
from pykstreams.state.interfaces.engine import Row, after, prefix_end
from pykstreams.state.interfaces.operator_stores import LastPut, SerializedRows
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.store import (
    KeyValueIterator,
    KeyValueStore,
    RawRow,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
    ValueTimestampHeaders,
)
from pykstreams.state.key_values.answers import answer
from pykstreams.state.layers.metered_store import MeteredStore
from pykstreams.state.layers.rows import GetRow, Rows, null_key, rows_of_bytes, rows_of_objects

K = TypeVar("K")
V = TypeVar("V")


class MeteredKeyValueStore(MeteredStore, KeyValueStore[K, V]):
    """A key-value store as it is handed out."""

    logged_from = 0
    operations: ClassVar[Mapping[str, str]] = {
        "get": "get",
        "get_row": "get",
        "take_row": "get",
        "put": "put",
        "put_row": "put",
        "keep_row": "put",
        "put_if_absent": "put-if-absent",
        "put_all": "put-all",
        "delete": "delete",
        "range": "range",
        "all": "all",
        "prefix_scan": "prefix-scan",
    }

    def _answer(self, query: Query[object]) -> object:
        return answer(self, query)

    def last_put(self, sink: SerializedSink) -> LastPut | None:
        codec = self._codec
        if self._cache is not None or not (
            write_same_bytes(codec.key_serializer, sink.key_serializer)
            and write_same_bytes(codec.value_serializer, sink.value_serializer)
        ):
            return None
        return self._last_put

    def _make_closures(self) -> None:
        self._last_put = LastPut()
        if self._cache is not None and self.layout is TIMESTAMPED:
            rows = rows_of_objects(self._cache, self._codec, self._name)
        else:
            rows = rows_of_bytes(self._top, self._codec, self._name, self._last_put)
        self.get_row, self.put_row, self.take_row, self.keep_row = rows

    def _close_closures(self) -> None:
        closed = self._closed
        self.get_row, self.put_row, self.take_row, self.keep_row = Rows(closed, closed, closed, closed)

    def _flushed_key(self) -> Callable[[bytes], object]:
        decode = self._codec.decode_key
        return lambda key: decode(key, ())

    def _key_as_written_by(self, serializer: object) -> slice | None:
        return slice(None) if write_same_bytes(self._codec.key_serializer, serializer) else None

    def before_put(self) -> Callable[[object], None] | None:
        if self._cache is None:
            return None
        encode_key, replaces = self._codec.encode_key, self._cache.replaces

        def notify(key: object) -> None:
            replaces(encode_key(key, ()))

        return notify

    def reader_below_cache(self) -> GetRow:
        """Returns the reader of rows as they were last flushed, which is as they were last forwarded."""
        if self._cache is None:
            return self.get_row
        encode_key, decode_row, get = self._codec.encode_key, self._codec.decoder(), self._packed_below_cache()

        def get_flushed(key: object) -> tuple[object, int] | None:
            packed = get(encode_key(key, ()))
            return None if packed is None else decode_row(packed)

        return get_flushed

    def serialized_below_cache(self, key_serializer: object, value_serializer: object) -> SerializedRows | None:
        codec = self._codec
        if self.layout is not TIMESTAMPED or not (
            write_same_bytes(codec.key_serializer, key_serializer)
            and write_same_bytes(codec.value_serializer, value_serializer)
        ):
            return None
        get, stamp_of, width, decode = (
            self._packed_below_cache(),
            TIMESTAMP.unpack_from,
            TIMESTAMP.size,
            codec.decode_value,
        )

        def read(key: bytes) -> tuple[bytes, int] | None:
            packed = get(key)
            return None if packed is None else (packed[width:], stamp_of(packed)[0])

        return SerializedRows(read, lambda value: decode(value, ()))

    def _packed_below_cache(self) -> Callable[[bytes], bytes | None]:
        """Returns the reader of packed rows as they were last flushed."""
        if self._cache is None:
            return self._top.get
        find, packed_of, get = self._cache.finder(), self._cache.packed, self._cache.below.get

        def get_flushed(key: bytes) -> bytes | None:
            entry = find(key)
            if entry is None:
                return None
            # an entry keeps the context of the record that wrote it until it is written through
            return packed_of(entry) if entry.headers is None else get(key)

        return get_flushed

    def rows_by_prefix(self, prefix_serializer: object) -> Callable[[object], Iterator[tuple[K, object, int]]]:
        """Returns the callable that scans for a prefix: (key, value, timestamp in ms) of each row with it.

        Behind a row that cannot be read the scan goes on with the next one.

        ``prefix_serializer`` is bound once, to the topic that the key serde gets; it may be over the default serde.
        """
        encode_prefix, decode_key = self._codec.bind_prefix(prefix_serializer), self._codec.decode_key
        decode_row, scan_top, name = self._codec.decoder(), self._top.scan, self._name

        def row_of(found: Row) -> tuple[K, object, int]:
            key, packed = found
            return (decode_key(key, ()), *decode_row(packed))

        def scan(prefix: object) -> Iterator[tuple[K, object, int]]:
            lower = encode_prefix(prefix, ())
            if lower is None:
                raise TypeError(f"the prefix {prefix!r} for store {name!r} was serialized to None")
            return map(row_of, scan_top(lower, prefix_end(lower), False))

        return scan

    def raw_rows(self) -> Iterator[RawRow]:
        """Every row as it is kept, without what only the cache knows until it is flushed."""
        self._check_open()
        unpack, keeps_time = self.layout.unpack, self.layout is not PLAIN
        for key, packed in self._engine.scan(None, None, False):
            value, timestamp, headers = unpack(packed)
            yield key, value, (timestamp if keeps_time else None), headers

    def get(self, key: K, default: Any = None) -> Any:
        packed = self._top.get(self._raw_key(key))
        try:
            return default if packed is None else self._shown(packed)
        except SerdeError as error:
            error.row_key = key
            raise

    def peek(self, key: K, *, skip_cache: bool = False) -> V | None:
        raw, cache = self._raw_key(key), self._cache
        if cache is None:
            packed = self._top.get(raw)
        else:
            packed = cache.below.get(raw) if skip_cache else cache.read(raw)
        return None if packed is None else cast("V", self._shown(packed))

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
        return None if packed is None else self._shown(packed)

    def range(self, lower: K | None = None, upper: K | None = None, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        first = None if lower is None else self._raw_key(lower)
        last = None if upper is None else self._raw_key(upper)
        if self._is_empty(first, last, lower, upper):
            return self._iterator(iter(()))
        return self._iterator(self._scan(first, None if last is None else after(last), reverse))

    def all(self, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        return self._iterator(self._scan(None, None, reverse))

    def prefix_scan(self, prefix: object, prefix_serializer: object) -> KeyValueIterator[K, V]:
        if prefix is None:
            raise TypeError(f"the prefix for store {self._name!r} is None; use all() for every row")
        serializer = given_serde(cast("SerdeOrType[object] | None", prefix_serializer), is_key=True)
        raw = bind_serializer(serializer, self._name)(prefix, ())
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
        decode_key, value = self._codec.decode_key, self._shown

        def row(key: bytes, packed: bytes) -> KeyValue[K, V]:
            return KeyValue(decode_key(key, ()), value(packed))

        return KeyValueIterator(rows, row, self._name)


class MeteredTimestampedKeyValueStore(MeteredKeyValueStore[K, ValueAndTimestamp[V]], TimestampedKeyValueStore[K, V]):
    """A key-value store with timestamps."""

    layout = TIMESTAMPED


class MeteredTimestampedKeyValueStoreWithHeaders(
    MeteredKeyValueStore[K, ValueTimestampHeaders[V]], TimestampedKeyValueStoreWithHeaders[K, V]
):
    """A key-value store with timestamps and headers."""

    layout = WITH_HEADERS
