"""Rows that are what a store holds: of key-value stores, and of windows and sessions as ready rows.

A key that has several rows keeps the one with the highest timestamp, of equal ones the last in the source; of the
records of a topic the last one, whatever its timestamp is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pykstreams.bulk.application import StorePlace
from pykstreams.bulk.sources.rows import RowParts
from pykstreams.bulk.targets.partitions import row_chooser
from pykstreams.bulk.targets.store_in_memory import OfflineStoreContext, StoreInMemory
from pykstreams.bulk.targets.target import (
    Add,
    DuplicateKeyError,
    EncodedRow,
    EncodeRow,
    FoldOrder,
    FoldRows,
    Refuse,
    RowError,
    checked_time,
    no_key,
)
from pykstreams.core.types import StreamPartitioner
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.encoding.composed_keys import PREFIX_BYTES, SessionKeySchema, WindowKeySchema
from pykstreams.state.encoding.layout import PLAIN
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.state.layers.rows import RowCodec
from pykstreams.state.layers.store_serdes import bound_codec

_NO_PREFIX: Final = bytes(PREFIX_BYTES)


@dataclass(frozen=True)
class Entries:
    """Entries of a key-value store, with or without timestamps.

    :param latest: whether a key may have several rows.
    """

    store: StorePlace
    latest: bool
    partitioner: StreamPartitioner[object, object] | None = None
    row_key = None
    keeps_last = True
    order = FoldOrder.AS_STORED

    def encoder(self, layout: TopicLayout) -> EncodeRow:
        name, codec = self.store.name, codec_of(self.store)
        encode_key, encode_value = codec.encode_key, codec.encode_value
        choose = row_chooser(self.store, self.partitioner, layout)

        def encode(parts: RowParts, add: Add) -> None:
            key, value, timestamp, _, _ = parts
            if key is None:
                raise no_key(name)
            time = checked_time(key, timestamp, name)
            raw = encode_key(key, ())
            add(choose(key, value, raw), raw, time, None if value is None else encode_value(value, ()), ())

        return encode

    def folder(self) -> FoldRows:
        return newest_of_keys(self.store.name, self.latest)


@dataclass(frozen=True)
class _TimedEntries(ABC):
    """Ready rows whose keys hold times: the store's own put makes their bytes."""

    store: StorePlace
    latest: bool
    partitioner: StreamPartitioner[object, object] | None = None
    row_key = None
    keeps_last = True
    order = FoldOrder.BY_KEY

    def encoder(self, layout: TopicLayout) -> EncodeRow:
        name, kept, schema = self.store.name, StoreInMemory(self.store, self.store.task(0)), self._schema()
        choose = row_chooser(self.store, self.partitioner, layout)
        put = self._putter(kept)

        def encode(parts: RowParts, add: Add) -> None:
            key, value = parts[0], parts[1]
            if key is None:
                raise no_key(name)
            put(parts)
            for raw, data, logged_time, headers in kept.take_all():
                user_key = schema.unpack(_NO_PREFIX + raw)[0]
                add(choose(key, value, user_key), raw, logged_time, data, headers)

        return encode

    def folder(self) -> FoldRows:
        return newest_of_keys(self.store.name, self.latest)

    @abstractmethod
    def _schema(self) -> WindowKeySchema | SessionKeySchema:
        """How the keys of the store are made up."""

    @abstractmethod
    def _putter(self, kept: StoreInMemory) -> Callable[[RowParts], None]:
        """Makes what checks a row and puts it into the store."""


class WindowEntries(_TimedEntries):
    """Windows as ready rows: key, start, value and timestamp."""

    def _schema(self) -> WindowKeySchema:
        return WindowKeySchema(1)

    def _putter(self, kept: StoreInMemory) -> Callable[[RowParts], None]:
        name, put_row = self.store.name, kept.store.put_row

        def put(parts: RowParts) -> None:
            key, value, timestamp, start, _ = parts
            if start is None or start < 0:
                raise RowError(f"the window of key {key!r} of store {name!r} starts at {start!r}; expected 0 or more")
            time = checked_time(key, timestamp, name)
            kept.at(time, ())
            put_row(key, start, value, time)

        return put


class SessionEntries(_TimedEntries):
    """Sessions as ready rows: key, start, end and aggregate; the timestamp of their records is their end."""

    def _schema(self) -> SessionKeySchema:
        return SessionKeySchema(1)

    def _putter(self, kept: StoreInMemory) -> Callable[[RowParts], None]:
        name, put_row = self.store.name, kept.store.put_row

        def put(parts: RowParts) -> None:
            key, value, _, start, end = parts
            if start is None or end is None or not 0 <= start <= end:
                raise RowError(
                    f"the session of key {key!r} of store {name!r} is from {start!r} to {end!r}; expected two times in "
                    "order"
                )
            kept.at(end, ())
            put_row(key, start, end, value)

        return put


def codec_of(place: StorePlace) -> RowCodec:
    """The serdes of a store, bound to the topic that is passed to them."""
    builder = place.builder
    context: Any = OfflineStoreContext(place, place.task(0), _unlogged)
    return bound_codec(builder.name, builder.key_serde, builder.value_serde, PLAIN, context)


def newest_of_keys(store: str, latest: bool) -> FoldRows:
    """Makes the fold that keeps the last of the rows of each key; all others are refused unless ``latest``."""

    def fold(rows: Iterator[EncodedRow], refuse: Refuse) -> Iterator[ChangelogRow]:
        newest = next(rows, None)
        if newest is None:
            return
        for row in rows:
            if row[0] != newest[0]:
                key, time, value, headers = newest
                yield key, value, time, headers
            elif not latest:
                refuse(_duplicate(store, newest), newest)
            newest = row
        key, time, value, headers = newest
        yield key, value, time, headers

    return fold


def _duplicate(store: str, row: EncodedRow) -> DuplicateKeyError:
    return DuplicateKeyError(
        f"key {row[0]!r} (serialized) of store {store!r} has another row that is as new as that of time {row[1]}, or "
        "newer; make the keys of the source unique, or say latest=True, and the newest row counts"
    )


def _unlogged(key: bytes, value: bytes | None, timestamp: int | None, headers: object) -> None:
    """Nothing is written while rows are encoded."""
