"""The questions that a store can be asked, each as the rows that one partition has for it, in the order of the store.

A question may go on after a row of an earlier answer. Key-value stores are entered at that row; the others are read
from the beginning, without showing what was shown already.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

import orjson

from pykstreams.core.errors import SerializationError
from pykstreams.core.windows import Windowed
from pykstreams.http.json_values import json_bytes
from pykstreams.http.problems import ProblemError
from pykstreams.runtime.queries.catalog import StoreDescription
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.serdes.base import AnySerde, bind_serializer
from pykstreams.state.encoding.composed_keys import LAST_TIME
from pykstreams.state.encoding.layout import NO_TIMESTAMP
from pykstreams.state.interfaces.session_store import SessionStore
from pykstreams.state.interfaces.store import KeyValueIterator, KeyValueStore
from pykstreams.state.interfaces.versioned_store import (
    ResultOrder,
    VersionedKeyValueStore,
    VersionedRecord,
    VersionedRecordIterator,
)
from pykstreams.state.interfaces.window_store import WindowStore
from pykstreams.state.queries.values import Shown, alone, keeps_headers, keeps_time
from pykstreams.state.versions.answers import version_as_of

K = TypeVar("K")

ShownRow: TypeAlias = dict[str, object]
"""A row before it is written as JSON."""

_ALONE = ""
"""The mark of a row after which no answer goes on."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an answer.

    :param mark: tells it from the other rows of its partition; a cursor is made of it.
    :param body: the row as JSON.
    """

    mark: str
    body: bytes


class Question(Protocol):
    """A question that is asked of each partition of a store.

    :param key: the key whose partition is asked; ``None`` asks all partitions.
    """

    @property
    def store(self) -> StoreDescription: ...

    @property
    def key(self) -> object: ...

    def rows(self, local: LocalStore, after: str | None) -> Iterator[Row]:
        """Reads a partition; of a store that may be opened anew it must be used up inside of its gate."""
        ...


def mark_of(key: bytes, *times: int) -> str:
    """The mark of a row, by the bytes of its key and its window."""
    return ".".join([base64.urlsafe_b64encode(key).decode().rstrip("="), *map(str, times)])


def key_writer(store: StoreDescription) -> Callable[[object], bytes]:
    """Returns the function that writes keys as the store has them."""
    encode = bind_serializer(serde_of(store).serializer, store.serde_topic)
    return lambda key: encode(key, ()) or b""


def key_of_mark(store: StoreDescription, mark: str) -> object:
    """The key of a mark; a ``ProblemError`` for what is none."""
    try:
        raw = base64.urlsafe_b64decode(mark.partition(".")[0] + "==")
        return serde_of(store).deserializer.deserialize(store.serde_topic, raw)
    except (ValueError, SerializationError) as error:
        raise ProblemError("bad-request", f"the cursor is damaged ({error}); begin again without it") from error


def serde_of(store: StoreDescription) -> AnySerde:
    """The serde of the keys of a store; a ``ProblemError`` for a store of the user, whose serdes are its own affair."""
    if store.key_serde is None:
        raise not_readable(store)
    return store.key_serde


def not_readable(store: StoreDescription) -> ProblemError:
    """The error for a store of the user."""
    return ProblemError(
        "wrong-kind",
        f"store {store.name!r} is one of your own, which HTTP cannot read; read it by KafkaStreams.store",
    )


@dataclass(slots=True)
class KeyQuestion:
    """The value of a key of a key-value store; a value itself, never changed, and made for each question."""

    store: StoreDescription
    key: object

    def rows(self, local: LocalStore, after: str | None) -> Iterator[Row]:
        return _only_row(self, local)

    def shown(self, store: KeyValueStore[object, object]) -> ShownRow | None:
        """Reads the row, inside of the gate; ``None`` when there is none."""
        kept = store.peek(self.key)
        return None if kept is None else _shown(self.key, kept, store)


@dataclass(frozen=True, slots=True)
class RangeQuestion:
    """The rows of a key-value store between two keys, or those whose keys begin with some bytes."""

    store: StoreDescription
    lower: object = None
    upper: object = None
    prefix: bytes | None = None
    reverse: bool = False

    @property
    def key(self) -> object:
        return None

    def rows(self, local: LocalStore, after: str | None) -> Iterator[Row]:
        last = None if after is None else self._key_asked_for(after)
        lower = last if last is not None and not self.reverse else self.lower
        upper = last if last is not None and self.reverse else self.upper

        def read(store: KeyValueStore[object, object]) -> KeyValueIterator[object, object]:
            if self.prefix is None or last is not None:
                return store.range(lower, upper, reverse=self.reverse)
            return store.prefix_scan(self.prefix, _Raw())

        written = key_writer(self.store)
        for key, kept, store in _pairs(local, read):
            raw = written(key)
            if (mark := mark_of(raw)) == after:
                continue
            if self.prefix is not None and not raw.startswith(self.prefix):
                break
            yield _row(self.store, key, kept, store, mark)

    def _key_asked_for(self, mark: str) -> object:
        """The key of a mark; a ``ProblemError`` for one outside of the question, of which a store would warn."""
        written, key = key_writer(self.store), key_of_mark(self.store, mark)
        raw = written(key)
        if (
            key is None
            or (self.lower is not None and raw < written(self.lower))
            or (self.upper is not None and raw > written(self.upper))
            or (self.prefix is not None and not raw.startswith(self.prefix))
        ):
            raise ProblemError(
                "bad-request",
                "the cursor stands at a key that is not asked for; take the 'next' of an answer as it is, or begin "
                "again without it",
            )
        return key


class _Raw:
    """Serializes bytes as they are."""

    def serialize(self, topic: str, data: bytes | None, headers: object = None) -> bytes | None:
        return data


@dataclass(slots=True)
class VersionQuestion:
    """The version of a key that was valid at a time; the newest one without a time. A value, never changed."""

    store: StoreDescription
    key: object
    as_of: int | None = None

    def rows(self, local: LocalStore, after: str | None) -> Iterator[Row]:
        return _only_row(self, local)

    def shown(self, store: VersionedKeyValueStore[object, object]) -> ShownRow | None:
        """Reads the row, inside of the gate; ``None`` when there is none."""
        found = store.get(self.key) if self.as_of is None else version_as_of(store, self.key, self.as_of)
        return None if found is None else _shown_version(self.key, found)


ShortQuestion: TypeAlias = KeyQuestion | VersionQuestion
"""Those for one row, so short that the worker may wait for all of it."""


def _only_row(question: ShortQuestion, local: LocalStore) -> Iterator[Row]:
    row = local.read(question.shown)
    if row is not None:
        yield Row(_ALONE, body_of(question.store, row))


@dataclass(frozen=True, slots=True)
class VersionsQuestion:
    """The versions of a key that were valid at some time between two, the newest first unless ``reverse``."""

    store: StoreDescription
    key: object
    time_from: int | None
    time_to: int | None
    reverse: bool

    def rows(self, local: LocalStore, after: str | None) -> Iterator[Row]:
        order = ResultOrder.ASCENDING if self.reverse else ResultOrder.DESCENDING

        def read(store: VersionedKeyValueStore[object, object]) -> VersionedRecordIterator[object]:
            return store.get(self.key, self.time_from, self.time_to, order)

        def found() -> Iterator[Row]:
            raw = key_writer(self.store)(self.key)
            with local.read(read) as versions:
                for one in versions:
                    yield _version(self.store, self.key, one, mark_of(raw, one.timestamp))

        return _after(found(), after)


@dataclass(frozen=True, slots=True)
class WindowsQuestion:
    """The windows of a key, or of the keys between two, that start between two times."""

    store: StoreDescription
    key: object
    time_from: int
    time_to: int
    lower: object = None
    upper: object = None
    reverse: bool = False

    def rows(self, local: LocalStore, after: str | None) -> Iterator[Row]:
        return _after(self._of_key(local) if self.key is not None else self._of_keys(local), after)

    def _of_key(self, local: LocalStore) -> Iterator[Row]:
        size = self.store.window_size_ms or 0

        def read(store: WindowStore[object, object]) -> KeyValueIterator[int, object]:
            return store.fetch(self.key, self.time_from, self.time_to, reverse=self.reverse)

        raw = key_writer(self.store)(self.key)
        for start, kept, store in _pairs(local, read):
            window = start, min(start + size, LAST_TIME)
            yield _row(self.store, self.key, kept, store, mark_of(raw, *window), window)

    def _of_keys(self, local: LocalStore) -> Iterator[Row]:
        def read(store: WindowStore[object, object]) -> KeyValueIterator[Windowed[object], object]:
            if self.lower is None and self.upper is None:
                return store.fetch_all(self.time_from, self.time_to, reverse=self.reverse)
            return store.fetch_range(self.lower, self.upper, self.time_from, self.time_to, reverse=self.reverse)

        yield from _windowed(self.store, _pairs(local, read))


@dataclass(frozen=True, slots=True)
class SessionsQuestion:
    """The sessions of a key, or of the keys between two, that touch a span of time."""

    store: StoreDescription
    key: object
    time_from: int
    time_to: int
    lower: object = None
    upper: object = None
    reverse: bool = False

    def rows(self, local: LocalStore, after: str | None) -> Iterator[Row]:
        def read(store: SessionStore[object, object]) -> KeyValueIterator[Windowed[object], object]:
            if self.key is not None:
                return store.find_sessions(self.key, self.time_from, self.time_to, reverse=self.reverse)
            return store.find_sessions_range(self.lower, self.upper, self.time_from, self.time_to, reverse=self.reverse)

        return _after(_windowed(self.store, _pairs(local, read)), after)


def _pairs(local: LocalStore, read: Callable[..., KeyValueIterator[K, object]]) -> Iterator[tuple[K, object, object]]:
    """The rows of an iterator, each with the store that it is of."""
    stores: list[object] = []

    def opened(store: object) -> KeyValueIterator[K, object]:
        stores.append(store)
        return read(store)

    with local.read(opened) as rows:
        for key, kept in rows:
            yield key, kept, stores[0]


def _windowed(described: StoreDescription, found: Iterator[tuple[Windowed[object], object, object]]) -> Iterator[Row]:
    written = key_writer(described)
    for key, kept, store in found:
        window = key.window.start, key.window.end
        yield _row(described, key.key, kept, store, mark_of(written(key.key), *window), window)


def _after(rows: Iterator[Row], mark: str | None) -> Iterator[Row]:
    """The rows after one with a mark; a ``ProblemError`` when there is none such."""
    if mark is None:
        yield from rows
        return
    seen = False
    for row in rows:
        if seen:
            yield row
        seen = seen or row.mark == mark
    if not seen:
        raise ProblemError("cursor-gone", "the row at which the cursor stands is gone; begin again without it")


def _row(
    described: StoreDescription,
    key: object,
    kept: object,
    store: object,
    mark: str,
    window: tuple[int, int] | None = None,
) -> Row:
    return Row(mark, body_of(described, _shown(key, kept, store, window)))


def _version(described: StoreDescription, key: object, found: VersionedRecord[object], mark: str) -> Row:
    return Row(mark, body_of(described, _shown_version(key, found)))


def _shown(key: object, kept: object, store: object, window: tuple[int, int] | None = None) -> ShownRow:
    parts = _parts_of(store)
    row: ShownRow = {"key": key}
    if window is not None:
        row["window"] = {"start": window[0], "end": window[1]}
    row["value"] = parts.value_of(kept)
    if parts.keeps_time and (timestamp := getattr(kept, "timestamp", None)) != NO_TIMESTAMP:
        row["timestamp"] = timestamp
    if parts.keeps_headers:
        row["headers"] = [list(header) for header in getattr(kept, "headers", ())]
    return row


class _Parts(NamedTuple):
    """The parts of the rows of a store, by its type."""

    value_of: Shown
    keeps_time: bool
    keeps_headers: bool


_PARTS: Final[dict[type, _Parts]] = {}
"""By the type of a store: six questions for its interfaces are more than the rest of a row costs."""


def _parts_of(store: object) -> _Parts:
    found = _PARTS.get(type(store))
    if found is None:
        found = _PARTS[type(store)] = _Parts(alone(store), keeps_time(store), keeps_headers(store))
    return found


def _shown_version(key: object, found: VersionedRecord[object]) -> ShownRow:
    return {"key": key, "value": found.value, "timestamp": found.timestamp, "valid_to": found.valid_to}


def body_of(described: StoreDescription, row: ShownRow) -> bytes:
    """A row as JSON; a ``ProblemError`` for what has no form there."""
    return json_bytes(row, f"store {described.name!r}")


def fragment(row: Row) -> orjson.Fragment:
    """A row as a part of a larger JSON text."""
    return orjson.Fragment(row.body)
