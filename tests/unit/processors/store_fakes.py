"""Stores of windows, sessions, versions and subscriptions as operators see them, kept in dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Headers
from pykstreams.core.windows import Window, Windowed
from pykstreams.state.interfaces.operator_stores import (
    JoinWindowRows,
    SessionRows,
    SubscriptionRows,
    VersionedRows,
    WindowRows,
)
from pykstreams.state.interfaces.store import FlushListener
from tests.unit.processors.fakes import FakeStore


class FakeWindowStore:
    """Rows by (key, start of the window); with ``cached`` it keeps changes until ``flush``."""

    def __init__(self, size: int, *, cached: bool = False) -> None:
        self.contents: dict[tuple[Any, int], tuple[Any, int]] = {}
        self.broken: Exception | None = None
        self.sends_old_values: bool | None = None
        self._size = size
        self._cached = cached
        self._dirty: dict[tuple[Any, int], None] = {}
        self._listener: FlushListener | None = None

    def get_row(self, key: Any, start: int) -> tuple[Any, int] | None:
        if self.broken is not None:
            raise self.broken
        return self.contents.get((key, start))

    def put_row(self, key: Any, start: int, value: Any, timestamp: int, headers: Headers = ()) -> None:
        if self._cached:
            self._dirty[key, start] = None
        if value is None:
            self.contents.pop((key, start), None)
        else:
            self.contents[key, start] = (value, timestamp)

    take_row = get_row
    keep_row = put_row

    def reader_below_cache(self) -> Callable[[Any, int], tuple[Any, int] | None]:
        assert not self._dirty, "what is not flushed is not kept apart here"
        return self.get_row

    def rows(self, key: Any, time_from: int, time_to: int, reverse: bool = False) -> Iterator[tuple[int, Any, int]]:
        starts = sorted((start for k, start in self.contents if k == key and time_from <= start <= time_to))
        for start in reversed(starts) if reverse else starts:
            yield (start, *self.contents[key, start])

    def rows_between(self, time_from: int, time_to: int) -> Iterator[tuple[Windowed[Any], Any, int]]:
        if self.broken is not None:
            raise self.broken
        for start, key in sorted((start, key) for key, start in self.contents if time_from <= start <= time_to):
            yield (self._windowed(key, start), *self.contents[key, start])

    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        self.sends_old_values = send_old_values
        self._listener = listener
        return self._cached

    def last_put(self, sink: SerializedSink) -> None:
        """Objects are kept here, and no bytes."""

    def flush(self, headers: Headers = ()) -> None:
        assert self._listener is not None
        for key, start in self._dirty:
            value, timestamp = self.contents[key, start]
            self._listener(self._windowed(key, start), (value, None, True), timestamp, headers)
        self._dirty.clear()

    def _windowed(self, key: Any, start: int) -> Windowed[Any]:
        return Windowed(key, Window(start, start + self._size))


class FakeJoinWindowStore:
    """A window store that retains duplicates, as the operators of a join see it."""

    def __init__(self, *rows: tuple[Any, int, Any]) -> None:
        self.kept: list[Any] = [(key, time, value, time, ()) for key, time, value in rows]
        self.broken: Exception | None = None

    def put_row(self, key: Any, time: int, value: Any, timestamp: int, headers: Headers) -> None:
        if self.broken is not None:
            raise self.broken
        self.kept.append((key, time, value, timestamp, headers))

    def rows(self, key: Any, time_from: int, time_to: int) -> Iterator[tuple[int, Any, int]]:
        found = [(time, value, at) for kept, time, value, at, _ in self.kept if kept == key]
        return iter(sorted(row for row in found if time_from <= row[0] <= time_to))


class FakeSessionStore:
    """A session store as operators see it, kept in a dict; with ``cached`` it keeps changes to itself."""

    def __init__(self, *, cached: bool = False) -> None:
        self.contents: dict[tuple[Any, int, int], Any] = {}
        self.broken: Exception | None = None
        self.sends_old_values: bool | None = None
        self.listener: FlushListener | None = None
        self._cached = cached

    def sessions(self, key: Any, earliest_end: int, latest_start: int) -> list[tuple[int, int, Any]]:
        if self.broken is not None:
            raise self.broken
        found = [(e, s, v) for (k, s, e), v in self.contents.items() if k == key and e >= earliest_end]
        return [(s, e, v) for e, s, v in sorted(found) if s <= latest_start]

    def get_row(self, session: Windowed[Any]) -> tuple[Any, int] | None:
        window = session.window
        found = self.contents.get((session.key, window.start, window.end))
        return None if found is None else (found, window.end)

    def last_put(self, sink: SerializedSink) -> None:
        """Objects are kept here, and no bytes."""

    def serialized_below_cache(self, key_serializer: Any, value_serializer: Any) -> None:
        """Objects are kept here, and no bytes."""

    def reader_below_cache(self) -> Callable[[Windowed[Any]], tuple[Any, int] | None]:
        assert not self._cached, "what is not flushed is not kept apart here"
        return self.get_row

    def put_row(self, key: Any, start: int, end: int, value: Any) -> None:
        if value is None:
            self.contents.pop((key, start, end), None)
        else:
            self.contents[key, start, end] = value

    def sessions_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed[Any], Any, int]]:
        for key, start, end in sorted(self.contents, key=lambda session: (session[2], session[1])):
            if earliest_end <= end <= latest_end:
                yield Windowed(key, Window(start, end)), self.contents[key, start, end], end

    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        self.listener, self.sends_old_values = listener, send_old_values
        return self._cached


class FakeSubscriptions:
    """The store of subscriptions, as a dict of bytes."""

    def __init__(self) -> None:
        self.rows: dict[bytes, tuple[bytes, int, Headers]] = {}

    def put_subscription(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value, timestamp, headers

    def subscriptions(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter([(key, row[0]) for key, row in sorted(self.rows.items()) if key.startswith(prefix)])


class FakeVersionedStore(FakeStore):
    """A versioned store in which no row has ever had a value."""

    def get_row_as_of(self, key: Any, time: int) -> tuple[Any, int] | None:
        return None

    def get_timeline(self, key: Any, time_from: int, time_to: int) -> list[tuple[int, Any]]:
        return [(0, None)]

    def get_end(self, key: Any, time: int) -> int | None:
        return None

    def oldest_time(self) -> int:
        return 0


_windows: WindowRows[Any, Any] = FakeWindowStore(10)
_joined_windows: JoinWindowRows[Any, Any] = FakeJoinWindowStore()
_sessions: SessionRows[Any, Any] = FakeSessionStore()
_subscriptions: SubscriptionRows = FakeSubscriptions()
_versions: VersionedRows[Any, Any] = FakeVersionedStore()
