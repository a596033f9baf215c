"""What lies below a versioned store: the newest value of each key, and in segments the versions that were replaced.

Keys of the engine below::

    00 | key                   time (8, big-endian) | newest value
    01 | segment (8) | key     a block of versions that ended in this segment (``blocks``)
    02                         observed stream time (8, big-endian)

A segment is as long as ``interval_ms``; a version lies where it *ended*, so that a segment can be dropped as a whole,
as one range, once nothing in it can be read any more. A deletion that is the newest of its key leaves no row under 00;
its time is the last one of the newest block. A put reads and writes one row of each kind unless it is out of order.

Observed stream time is the highest time that was put, and is kept with each commit: Kafka Streams begins anew after
each restart, and then takes records for which it is too late, and finds no history (``RocksDBVersionedStore``,
``LogicalKeyValueSegments``, 4.3.1). A record that is older than it by more than the retention is not put.

As in Kafka Streams, deleting a key at the very time of its newest version brings back what was before that version,
and nothing remembers the deletion: a later put of an older version is then the newest one. Where an older version
ended at that time, or the key had been deleted then before, the deletion is remembered.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from pykstreams.core.metrics import Counter
from pykstreams.state.engines.engine import Engine
from pykstreams.state.store import ChangelogRow, StoreContext
from pykstreams.state.versions.blocks import (
    Version,
    appended,
    bounds,
    deleted_at,
    divided,
    index_at,
    last_time,
    prepended,
    replaced,
    single,
    value_at,
    versions,
)
from pykstreams.state.versions.store import PUT_RETURN_CODE_NOT_PUT, PUT_RETURN_CODE_VALID_TO_UNDEFINED

logger = logging.getLogger(__name__)

NO_TIME: Final = -1
"""Observed stream time before the first record."""

_NEWEST: Final = b"\0"
_BLOCKS: Final = b"\1"
_STREAM_TIME: Final = b"\2"
_STAMP: Final = Struct(">q")
_STAMP_BYTES: Final = _STAMP.size
_SEGMENT_AT: Final = len(_BLOCKS)
_KEY_AT: Final = _SEGMENT_AT + _STAMP_BYTES
_NEAR_SEGMENTS: Final = 4

_stamp_of = _STAMP.unpack_from


class RawVersion(NamedTuple):
    """A serialized version; ``valid_to`` is ``None`` for the newest of its key."""

    key: bytes
    value: bytes
    timestamp: int
    valid_to: int | None


class VersionHistory:
    """All versions of the keys of one store, as bytes.

    :param retention_ms: how long a version can be read after it was replaced, and how late a record may come.
    """

    def __init__(self, engine: Engine, retention_ms: int, interval_ms: int, name: str) -> None:
        self._engine = engine
        self._retention = retention_ms
        self._interval = interval_ms
        self._name = name
        self._forget()

    def _forget(self) -> None:
        self.observed_time = NO_TIME
        self._kept_time = NO_TIME
        self._segments: list[int] = []
        self._prefixes: dict[int, bytes] = {}

    def open(self, context: StoreContext) -> None:
        engine = self._engine
        engine.open(context)
        self._get, self._put = engine.get, engine.put
        self._forget()
        self._refused: Counter = context.metrics.counter(
            "dropped-records-total", "stream-task-metrics", task_id=str(context.task_id)
        )
        self._task_id = context.task_id
        self._warned_put = self._warned_get = False
        kept = engine.get(_STREAM_TIME)
        if kept is not None:
            self.observed_time = self._kept_time = _stamp_of(kept)[0]
        self._find_segments()
        self._drop_expired()

    def newest(self, key: bytes) -> tuple[bytes, int] | None:
        """The newest value of a key and its time."""
        row = self._get(_NEWEST + key)
        return None if row is None else (row[_STAMP_BYTES:], _stamp_of(row)[0])

    def as_of(self, key: bytes, time: int) -> tuple[bytes, int] | None:
        """The value that a key had at a time, and since when."""
        row = self._get(_NEWEST + key)
        until = None
        if row is not None:
            until = _stamp_of(row)[0]
            if until <= time:
                return row[_STAMP_BYTES:], until
        if time < self.observed_time - self._retention:
            self._warn_expired_read(time)
            return None
        found = self._block_after(key, time, until)
        if found is None:
            return None
        block = found[1]
        if bounds(block)[1] > time:
            return None
        index, start, _ = index_at(block, time)
        value = value_at(block, index)
        return None if value is None else (value, start)

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Puts a version, ``None`` for a deletion; gives until when it is valid (``VersionedKeyValueStore.put``)."""
        if timestamp > self.observed_time:
            self.observed_time = timestamp
            if self._segments and self._segments[0] < (timestamp - self._retention) // self._interval:
                self._drop_expired()
        elif timestamp < self.observed_time - self._retention:
            self._refuse(timestamp)
            return PUT_RETURN_CODE_NOT_PUT
        newest_key = _NEWEST + key
        row = self._get(newest_key)
        if row is None:
            return self._put_older(key, value, timestamp, None)
        newest = _stamp_of(row)[0]
        if timestamp < newest:
            return self._put_older(key, value, timestamp, newest)
        if timestamp > newest:
            self._append(key, row[_STAMP_BYTES:], newest, timestamp)
        self._put(newest_key, None if value is None else _STAMP.pack(timestamp) + value)
        return PUT_RETURN_CODE_VALID_TO_UNDEFINED

    def is_expired(self, timestamp: int) -> bool:
        """Whether a record of that time would not be put."""
        return timestamp < self.observed_time - self._retention

    def between(self, key: bytes, time_from: int, time_to: int) -> list[tuple[bytes, int, int | None]]:
        """The values that a key had at any time between two, both inclusive: (value, since, until), in order of time.

        What was replaced before the retention is left out; the newest one never is.
        """
        row = self._get(_NEWEST + key)
        found: list[tuple[bytes, int, int | None]] = []
        readable = self.observed_time - self._retention
        if time_to >= readable:
            first = max(time_from, readable)
            for segment in self._segments[bisect_left(self._segments, first // self._interval) :]:
                block = self._get(self._prefixes[segment] + key)
                if block is None:
                    continue
                found += [version for version in _kept(versions(block)) if version[1] <= time_to and version[2] > first]
                if last_time(block)[0] > time_to:
                    break
        if row is not None:
            since = _stamp_of(row)[0]
            if since <= time_to:
                found.append((row[_STAMP_BYTES:], since, None))
        return found

    def rows(self) -> Iterator[RawVersion]:
        """Every version that can be read, by key and then by time."""
        scan, readable = self._engine.scan, self.observed_time - self._retention
        found = [
            RawVersion(key[_KEY_AT:], value, start, end)
            for key, block in scan(_BLOCKS, _STREAM_TIME, False)
            if int.from_bytes(key[_SEGMENT_AT:_KEY_AT]) in self._prefixes
            for value, start, end in _kept(versions(block))
            if end > readable
        ]
        found += [
            RawVersion(key[len(_NEWEST) :], row[_STAMP_BYTES:], _stamp_of(row)[0], None)
            for key, row in scan(_NEWEST, _BLOCKS, False)
        ]
        return iter(sorted(found, key=lambda row: (row.key, row.timestamp)))

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        """Takes records of the changelog, each as it was put once."""
        refused, self._refused = self._refused, Counter()
        warned, self._warned_put = self._warned_put, True
        put = self.put
        for key, value, timestamp, _ in rows:
            put(key, value, timestamp)
        self._refused, self._warned_put = refused, warned
        self.commit(None)

    def commit(self, offset: int | None) -> None:
        if self.observed_time != self._kept_time:
            self._keep_time()
        self._engine.commit(offset)

    def _put_older(self, key: bytes, value: bytes | None, timestamp: int, until: int | None) -> int:
        """Puts a version below the newest one, which starts at ``until``, or where the key has no newest value."""
        found = self._block_after(key, timestamp, until)
        if found is not None:
            segment, block = found
            first = bounds(block)[1]
            if first <= timestamp:
                return self._put_inside(key, value, timestamp, segment, block)
            until = first
        if until is None:
            if value is None:
                self._delete_newest(key, timestamp)
            else:
                self._put(_NEWEST + key, _STAMP.pack(timestamp) + value)
            return PUT_RETURN_CODE_VALID_TO_UNDEFINED
        place = self._place(until // self._interval) + key
        kept = self._get(place)
        if kept is None:
            self._put(place, single(value, timestamp, until))
        elif last_time(kept)[0] <= timestamp:
            self._put(place, appended(kept, value, timestamp, until))
        else:
            self._put(place, prepended(kept, value, timestamp))
        return until

    def _put_inside(self, key: bytes, value: bytes | None, timestamp: int, segment: int, block: bytes) -> int:
        """Replaces a version of the block, or divides it, of which the first part may belong to an older segment."""
        index, start, end = index_at(block, timestamp)
        if start == timestamp:
            block = replaced(block, index, value, timestamp)
        elif timestamp // self._interval == segment:
            block = divided(block, index, value, timestamp)
        else:
            self._append(key, value_at(block, index), start, timestamp)
            block = replaced(block, index, value, timestamp)
        self._put(self._prefixes[segment] + key, block)
        return end

    def _append(self, key: bytes, value: bytes | None, start: int, end: int) -> None:
        """Keeps a version that ends later than every other of its segment."""
        place = self._place(end // self._interval) + key
        block = self._get(place)
        self._put(place, single(value, start, end) if block is None else appended(block, value, start, end))

    def _delete_newest(self, key: bytes, timestamp: int) -> None:
        """Remembers a deletion of a key that has no newest value."""
        place = self._place(timestamp // self._interval) + key
        block = self._get(place)
        if block is None:
            self._put(place, deleted_at(timestamp))
            return
        last = last_time(block)[0]
        if last != timestamp:
            self._put(place, appended(block, None, last, timestamp))

    def _block_after(self, key: bytes, time: int, until: int | None) -> tuple[int, bytes] | None:
        """The block of the first version that ended after a time, with its segment.

        Looks from that time on where many versions are likely to be, then from the newest one back.
        """
        segments, prefixes, get, interval = self._segments, self._prefixes, self._get, self._interval
        low = bisect_left(segments, time // interval)
        high = len(segments) if until is None else bisect_right(segments, until // interval)
        near = min(low + _NEAR_SEGMENTS, high)
        while low < near:
            segment = segments[low]
            block = get(prefixes[segment] + key)
            if block is not None and last_time(block)[0] > time:
                return segment, block
            low += 1
        found = None
        high -= 1
        while high >= low:
            segment = segments[high]
            block = get(prefixes[segment] + key)
            high -= 1
            if block is None:
                continue
            last, first, _ = bounds(block)
            if last <= time:
                break
            found = segment, block
            if first <= time:
                break
            high = min(high, bisect_right(segments, first // interval) - 1)
        return found

    def _place(self, segment: int) -> bytes:
        """The prefix of a segment, which is there from now on."""
        prefix = self._prefixes.get(segment)
        if prefix is None:
            prefix = self._prefixes[segment] = _prefix(segment)
            insort(self._segments, segment)
        return prefix

    def _find_segments(self) -> None:
        scan, cursor = self._engine.scan, _BLOCKS
        while (row := next(scan(cursor, _STREAM_TIME, False), None)) is not None:
            segment = int.from_bytes(row[0][_SEGMENT_AT:_KEY_AT])
            self._place(segment)
            cursor = _prefix(segment + 1)

    def _drop_expired(self) -> None:
        oldest = (self.observed_time - self._retention) // self._interval
        expired = bisect_left(self._segments, oldest)
        if not expired:
            return
        self._engine.drop(_prefix(self._segments[0]), _prefix(oldest))
        for segment in self._segments[:expired]:
            del self._prefixes[segment]
        del self._segments[:expired]
        self._keep_time()

    def _keep_time(self) -> None:
        self._put(_STREAM_TIME, _STAMP.pack(self.observed_time))
        self._kept_time = self.observed_time

    def _refuse(self, timestamp: int) -> None:
        self._refused.add()
        if self._warned_put:
            return
        self._warned_put = True
        logger.warning(
            "versioned store %r of task %s does not put records that are older than its history retention of %d ms: "
            "the first has the time %d, when the newest has %d. Give the store a longer retention if such records "
            "matter",
            self._name,
            self._task_id,
            self._retention,
            timestamp,
            self.observed_time,
        )

    def _warn_expired_read(self, time: int) -> None:
        if self._warned_get:
            return
        self._warned_get = True
        logger.warning(
            "versioned store %r of task %s was asked for a value as of %d, which is older than its newest record (%d) "
            "by more than its history retention of %d ms: it finds nothing there but versions that are still valid. "
            "Give the store a longer retention if such reads matter",
            self._name,
            self._task_id,
            time,
            self.observed_time,
            self._retention,
        )


def _prefix(segment: int) -> bytes:
    return _BLOCKS + segment.to_bytes(_STAMP_BYTES)


def _kept(found: list[Version]) -> Iterator[tuple[bytes, int, int]]:
    """Versions without the deletions."""
    return ((value, start, end) for value, start, end in found if value is not None)
