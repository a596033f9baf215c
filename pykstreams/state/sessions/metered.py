"""The outermost layer of a session store: what users and operators call, with values instead of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeVar, cast

from pykstreams.core.record import KeyValue
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Headers, Timestamp, timestamp_ms
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes.base import write_same_bytes
from pykstreams.serdes.windowed import SessionWindowedSerializer
from pykstreams.state.encoding.changelog_rows import ChangelogColumns
from pykstreams.state.encoding.composed_keys import KEY_AND_TIMES, LAST_TIME, PREFIX_BYTES, SessionKeySchema
from pykstreams.state.encoding.layout import HEADERS_AND_VALUE, PLAIN
from pykstreams.state.engines.segments import SegmentedEngine
from pykstreams.state.interfaces.engine import Row
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.session_store import (
    AggregationWithHeaders,
    RawSession,
    Session,
    SessionStore,
    SessionStoreWithHeaders,
)
from pykstreams.state.interfaces.store import ChangelogRow, FlushListener, KeyValueIterator
from pykstreams.state.layers.cache_entries import UNSET
from pykstreams.state.layers.cache_flush import Send, Straight
from pykstreams.state.layers.changelogging import record_being_processed
from pykstreams.state.layers.metered_store import MeteredStore, StoreParts
from pykstreams.state.layers.rows import null_key
from pykstreams.state.sessions.answers import answer
from pykstreams.state.sessions.end_index import EndIndex
from pykstreams.state.sessions.order import InMemorySessions, SegmentOrder, SessionOrder, TimeOrder
from pykstreams.state.sessions.straight import straight_sessions

K = TypeVar("K")
AGG = TypeVar("AGG")


@dataclass(frozen=True, slots=True)
class SessionParts(StoreParts):
    """The parts of which a session store is made.

    :param index: the sessions by their end, where the store keeps such an index.
    """

    engine: SegmentedEngine
    schema: SessionKeySchema
    index: EndIndex | None = None


class MeteredSessionStore(MeteredStore, SessionStore[K, AGG]):
    """A session store as it is handed out."""

    logged_from = PREFIX_BYTES
    operations: ClassVar[Mapping[str, str]] = {
        "put": "put",
        "put_row": "put",
        "remove": "remove",
        "get_row": "fetch",
        "sessions": "fetch",
        "find_sessions": "fetch",
        "find_sessions_range": "fetch",
        "find_sessions_by_end": "fetch",
        "fetch_session": "fetch",
    }

    def __init__(self, parts: SessionParts) -> None:
        super().__init__(parts)
        self._segments = parts.engine
        self._schema = parts.schema
        self._index = parts.index

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        logged = ChangelogColumns.of(rows)
        keys = self._schema.composed(logged.keys)
        self._engine.write(self.layout.restored(logged.with_keys(keys)))
        if not self.persistent:
            unpack, noted = self._schema.unpack, self._order.noted
            for key, value in zip(keys, logged.values, strict=True):
                noted(*unpack(key), value is None)
        self._tell_cache()

    def _tell_cache(self) -> None:
        if self._cache is not None:
            self._cache.knows_below(self._segments.last_there)

    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        if self._cache is None:
            return False
        current, name, decode_row = self._current, self._name, self._codec.decoder()
        unpack, decode_key, headers_of = self._schema.unpack, self._codec.decode_key, self._headers_of

        def forward(composed: bytes, packed: bytes | None, old: bytes | None, value: object, timestamp: int) -> None:
            message, _, headers = record_being_processed(current, name)
            raw, start, end = unpack(composed)
            if value is UNSET:
                value = None if packed is None else decode_row(packed)[0]
            old_value = None if old is None else decode_row(old)[0]
            windowed = Windowed(decode_key(raw, ()), Window(start, end))
            headers = headers_of(packed, headers)
            current.raw = (message, end, headers)
            listener(windowed, (value, old_value, True), end, headers)

        self._cache.on_flush(forward, send_old_values, None if send_old_values else self._straight_to(sink))
        return True

    def _straight(self, key_part: slice, send: Send) -> Straight | None:
        return partial(straight_sessions, key_part, send, self._schema.time_of) if self.layout is PLAIN else None

    def _key_as_written_by(self, serializer: object) -> slice | None:
        if type(serializer) is not SessionWindowedSerializer:
            return None
        return KEY_AND_TIMES if write_same_bytes(self._codec.key_serializer, serializer.inner) else None

    def sessions_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed[object], object, int]]:
        self._check_open()
        decode_row = self._codec.decoder()
        for composed, packed in self._order.ended(earliest_end, latest_end):
            windowed = self._windowed(composed)
            yield windowed, decode_row(packed)[0], windowed.window.end

    @property
    def observed_time(self) -> int:
        return self._segments.observed_time

    def advance(self, time: int) -> None:
        self._segments.advance(time)

    def raw_rows(self) -> Iterator[RawSession]:
        """Every session as it is kept, without what only the cache knows until it is flushed."""
        self._check_open()
        unpack = self.layout.unpack
        for composed, packed in self._engine.scan(None, None, False):
            value, _, headers = unpack(packed)
            yield RawSession(*self._schema.unpack(composed), value, headers)

    def put(self, session_key: Windowed[K], aggregate: AGG | None) -> None:
        raw, start, end = self._parts(session_key)
        packed = None if aggregate is None else self._packed(aggregate)
        self._top.put(self._schema.pack(raw, start, end), packed)
        self._order.noted(raw, start, end, packed is None)

    def remove(self, session_key: Windowed[K]) -> None:
        raw, start, end = self._parts(session_key)
        composed = self._schema.pack(raw, start, end)
        if isinstance(self._top, InMemorySessions):
            self._top.remove(composed)
        else:
            self._top.put(composed, None)
        self._order.noted(raw, start, end, True)

    def find_sessions(
        self, key: K, earliest_session_end: Timestamp, latest_session_start: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        earliest, latest = _bounds(earliest_session_end, latest_session_start)
        return self._iterator(self._order_of_open().of_key(self._raw_key(key), earliest, latest, reverse))

    def find_sessions_range(
        self,
        key_from: K | None,
        key_to: K | None,
        earliest_session_end: Timestamp,
        latest_session_start: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], AGG]:
        earliest, latest = _bounds(earliest_session_end, latest_session_start)
        order = self._order_of_open()
        lower = None if key_from is None else self._raw_key(key_from)
        upper = None if key_to is None else self._raw_key(key_to)
        if self._is_empty(lower, upper, key_from, key_to):
            return self._iterator(iter(()))
        return self._iterator(order.of_keys(lower, upper, earliest, latest, reverse))

    def find_sessions_by_end(
        self, earliest_session_end: Timestamp, latest_session_end: Timestamp
    ) -> KeyValueIterator[Windowed[K], AGG]:
        earliest = timestamp_ms(earliest_session_end, "earliest session end")
        latest = timestamp_ms(latest_session_end, "latest session end")
        return self._iterator(self._order_of_open().ended(earliest, latest))

    def fetch_session(self, key: K, session_start: Timestamp, session_end: Timestamp) -> AGG | None:
        start = timestamp_ms(session_start, "session start")
        end = timestamp_ms(session_end, "session end")
        packed = self._get(self._schema.pack(self._raw_key(key), start, end))
        return None if packed is None else cast("AGG", self._shown(packed))

    def fetch(self, key: K, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], AGG]:
        return self.find_sessions(key, 0, LAST_TIME, reverse=reverse)

    def fetch_range(
        self, key_from: K | None, key_to: K | None, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        return self.find_sessions_range(key_from, key_to, 0, LAST_TIME, reverse=reverse)

    def _answer(self, query: Query[object]) -> object:
        return answer(self, query)

    def _make_closures(self) -> None:
        self._tell_cache()
        top, cache = self._top, self._cache
        self._order: SessionOrder
        if self.persistent:
            index = self._index if cache is None else None
            self._order = SegmentOrder(self._segments, top, cache, self._schema, index)
        else:
            self._order = TimeOrder(self._segments, top, cache, self._schema)
            for composed, _ in self._engine.scan(None, None, False):  # those of the task that it was handed over by
                self._order.noted(*self._schema.unpack(composed), False)
        self._get = top.get if cache is None else cache.read
        pack, name = self._schema.pack, self._name
        encode_key, decode_row = self._codec.encode_key, self._codec.decoder()
        encode_row = self._codec.encoder()
        of_key, noted, get, put = self._order.of_key, self._order.noted, self._get, top.put
        unpack_times = self._schema.unpack
        last_key: object = UNSET
        last_raw = b""

        def raw_of(key: object) -> bytes:
            """Serializes a key; an operator comes several times with the very same object."""
            nonlocal last_key, last_raw
            if key is not last_key:
                if key is None:
                    raise null_key(name)
                last_raw = encode_key(key, ())
                last_key = key
            return last_raw

        def sessions(key: object, earliest_end: int, latest_start: int) -> list[Session]:
            found: list[Session] = []
            for composed, packed in of_key(raw_of(key), earliest_end, latest_start, False):
                _, start, end = unpack_times(composed)
                found.append((start, end, decode_row(packed)[0]))
            return found

        def get_row(windowed: Windowed[object]) -> tuple[object, int] | None:
            window = windowed.window
            packed = get(pack(raw_of(windowed.key), window.start, window.end))
            return None if packed is None else (decode_row(packed)[0], window.end)

        def put_row(key: object, start: int, end: int, value: object) -> None:
            raw = raw_of(key)
            packed = encode_row(value, end)
            put(pack(raw, start, end), packed)
            noted(raw, start, end, packed is None)

        self.sessions, self.get_row, self.put_row = sessions, get_row, put_row

    def reader_below_cache(self) -> Callable[[Windowed[object]], tuple[object, int] | None]:
        """Makes the reader of sessions as they were last flushed, which is as they were last forwarded."""
        if self._cache is None:
            return self.get_row
        get, pack, encode_key = self._cache.below.get, self._schema.pack, self._codec.encode_key
        decode_row = self._codec.decoder()

        def get_flushed(windowed: Windowed[object]) -> tuple[object, int] | None:
            window = windowed.window
            packed = get(pack(encode_key(windowed.key, ()), window.start, window.end))
            return None if packed is None else (decode_row(packed)[0], window.end)

        return get_flushed

    def _close_closures(self) -> None:
        self.sessions = self.get_row = self.put_row = self._closed

    def _flushed_key(self) -> Callable[[bytes], object]:
        return self._windowed

    def _headers_of(self, packed: bytes | None, of_record: Headers) -> Headers:
        """The headers with which a session leaves the cache."""
        return of_record

    def _windowed(self, composed: bytes) -> Windowed[K]:
        raw, start, end = self._schema.unpack(composed)
        return Windowed(self._codec.decode_key(raw, ()), Window(start, end))

    def _parts(self, session_key: Windowed[K]) -> tuple[bytes, int, int]:
        """Serialized key, start and end of a session that a user names."""
        if not isinstance(session_key, Windowed):
            raise TypeError(
                f"store {self._name!r} keeps sessions and was given {session_key!r}; expected a Windowed key"
            )
        return self._raw_key(session_key.key), session_key.window.start, session_key.window.end

    def _order_of_open(self) -> SessionOrder:
        self._check_open()
        return self._order

    def _iterator(self, rows: Iterator[Row]) -> KeyValueIterator[Windowed[K], AGG]:
        windowed, shown = self._windowed, self._shown

        def row(composed: bytes, packed: bytes) -> KeyValue[Windowed[K], AGG]:
            return KeyValue(windowed(composed), shown(packed))

        return KeyValueIterator(rows, row, self._name)


class MeteredSessionStoreWithHeaders(
    MeteredSessionStore[K, AggregationWithHeaders[AGG]], SessionStoreWithHeaders[K, AGG]
):
    """A session store with headers."""

    layout = HEADERS_AND_VALUE

    def _headers_of(self, packed: bytes | None, of_record: Headers) -> Headers:
        return () if packed is None else self.layout.unpack(packed)[2]


def _bounds(earliest_end: Timestamp, latest_start: Timestamp) -> tuple[int, int]:
    return timestamp_ms(earliest_end, "earliest session end"), timestamp_ms(latest_start, "latest session start")
