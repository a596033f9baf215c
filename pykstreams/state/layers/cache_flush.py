"""The ways in which dirty entries leave a cache: each is written below, and forwarded where somebody listens.

``forwarding`` takes one entry after the other, as ``CachingKeyValueStore.putAndMaybeForward`` does (4.3.1): whoever
reads the store while a row is forwarded sees the rows before it, and none after it. Where nothing lies between the
cache and a topic that could look, ``straight`` writes all rows, and then sends all, in the bytes that were made for the
store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from pykstreams.core.processor import CurrentRecord
from pykstreams.core.serialized_sink import SerializedRecord
from pykstreams.state.encoding.layout import NO_TIMESTAMP, TIMESTAMP
from pykstreams.state.interfaces.engine import BytesStore, Row
from pykstreams.state.layers.cache_entries import IMMUTABLE, UNSET, CacheEntry

Forward: TypeAlias = Callable[[bytes, bytes | None, bytes | None, object, int], None]
"""Takes what leaves a cache: (key, new packed value, old packed value, new object or ``UNSET``, the object's time)."""

Encode: TypeAlias = Callable[[object, int], bytes | None]
"""Packs a value with its timestamp."""

WriteThrough: TypeAlias = Callable[[list[CacheEntry]], None]
"""Writes dirty entries below and forwards them, in order."""

PutRows: TypeAlias = Callable[[Sequence[Row]], None]
"""Puts several rows, in order; no deletes."""

Send: TypeAlias = Callable[[Iterable[SerializedRecord]], None]
"""Sends records into a topic."""

Straight: TypeAlias = Callable[[BytesStore, CurrentRecord, Encode, WriteThrough], WriteThrough]
"""Makes a way into a topic: (layer below, current record, how values are packed, the way one by one)."""

_TIME_BYTES: Final = TIMESTAMP.size

BATCH_ROWS: Final = 128
"""So few that what is made of them is still in the processor's caches when it is sent."""


def forwarding(
    below: BytesStore, current: CurrentRecord, encode: Encode, forward: Forward | None, *, send_old_values: bool = False
) -> WriteThrough:
    """Makes the function that forwards each entry, as part of the record that put it, when it is written."""
    put, get = below.put, below.get
    immutable = IMMUTABLE

    def write_through(entries: list[CacheEntry]) -> None:
        saved = current.raw
        try:
            for entry in entries:
                key, value, packed = entry.key, entry.value, entry.packed
                if packed is UNSET:
                    packed = entry.packed = encode(value, entry.timestamp)
                current.raw = entry.take_context()  # a clean entry keeps no record alive
                if packed is not None and value.__class__ in immutable:
                    entry.packed = UNSET  # the object stays, and takes less than its bytes
                else:
                    entry.value = UNSET  # what is forwarded may be changed further down; the bytes stay
                old = get(key) if send_old_values or (packed is None and forward is not None) else None
                if packed is None and old is None and forward is not None and not current.replayed:
                    continue
                put(key, packed)
                if forward is not None:
                    shown = UNSET if packed is None else value
                    forward(key, packed, old if send_old_values else None, shown, entry.timestamp)
        finally:
            current.raw = saved

    return write_through


def straight(
    key_part: slice,
    send: Send,
    below: BytesStore,
    current: CurrentRecord,
    encode: Encode,
    one_by_one: WriteThrough,
) -> WriteThrough:
    """Makes the function that writes entries with timestamps in batches, and sends them so; deletes go ``one_by_one``.

    :param key_part: which bytes of a key of the cache are the key of the record.
    """
    put_rows = rows_taker(below)
    immutable, time_of = IMMUTABLE, TIMESTAMP.unpack_from

    def write_batch(rows: list[Row], records: list[SerializedRecord]) -> None:
        if rows:
            put_rows(rows)
            send(records)

    def write_through(entries: list[CacheEntry]) -> None:
        rows: list[Row] = []
        records: list[SerializedRecord] = []
        for entry in entries:
            key, value, packed, headers = entry.key, entry.value, entry.packed, entry.headers
            if packed is UNSET:
                try:
                    packed = entry.packed = encode(value, entry.timestamp)
                except Exception:
                    packed = None  # the error comes once more below, when those before are written
            if packed is None or headers is None:
                write_batch(rows, records)
                rows, records = [], []
                one_by_one([entry])
                continue
            if value.__class__ in immutable:
                entry.packed = UNSET
            else:
                entry.value = UNSET
            entry.headers = entry.message = None
            timestamp = time_of(packed)[0]
            rows.append((key, packed))
            if timestamp == NO_TIMESTAMP:
                timestamp = entry.time
            records.append((key[key_part], packed[_TIME_BYTES:], timestamp, headers))
            if len(rows) == BATCH_ROWS:
                write_batch(rows, records)
                rows, records = [], []
        write_batch(rows, records)

    return write_through


def rows_taker(store: BytesStore) -> PutRows:
    """Returns the callable that puts rows into a layer: its ``put_rows``, if it has one."""
    taker: PutRows | None = getattr(store, "put_rows", None)
    if taker is not None:
        return taker
    put = store.put

    def put_rows(rows: Sequence[Row]) -> None:
        for key, packed in rows:
            put(key, packed)

    return put_rows
