"""The engine below a versioned store: the newest value of each key, and in segments the versions that were replaced.

Keys of the engine below::

    00 | key                   time (8, big-endian) | newest value (``newest``)
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
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.interfaces.store import ChangelogRow, StoreContext
from pykstreams.state.interfaces.versioned_store import PUT_RETURN_CODE_NOT_PUT, PUT_RETURN_CODE_VALID_TO_UNDEFINED
from pykstreams.state.versions.blocks import (
    Version,
    appended,
    bounds,
    deleted_at,
    divided,
    found_at,
    index_at,
    last_time,
    prepended,
    replaced,
    single,
    value_at,
    versions,
)
from pykstreams.state.versions.newest import Newest, NewestRows

log = logging.getLogger(__name__)

NO_TIME: Final = -1
"""Observed stream time before the first record."""

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

    can_be_released = True

    def __init__(self, engine: Engine, retention_ms: int, interval_ms: int, name: str) -> None:
        self._engine = engine
        self._newest_rows = NewestRows(engine)
        self.newest: Callable[[bytes], Newest | None] = self._newest_rows.get
        """Returns the newest value of a key, and since when."""
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
        self._newest_rows.open()
        self._forget()
        self._count_late: Callable[[str], None] = context.count_late
        self._task_id = context.task_id
        self._warned_put = self._warned_get = False
        kept = engine.get(_STREAM_TIME)
        if kept is not None:
            self.observed_time = self._kept_time = _stamp_of(kept)[0]
        self._find_segments()
        self._drop_expired()

    def as_of(self, key: bytes, time: int) -> Newest | None:
        """The value that a key had at a time, and since when."""
        newest = self.newest(key)
        until = None
        if newest is not None:
            until = newest[1]
            if until <= time:
                return newest
        if time < self.oldest_time:
            self._warn_expired_read(time)
            return None
        found = self._block_after(key, time, until)
        if found is None:
            return None
        return found_at(found[1], time)

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Puts a version, ``None`` for a deletion; returns until when it is valid (``VersionedKeyValueStore.put``)."""
        if timestamp > self.observed_time:
            self.observed_time = timestamp
            if self._segments and self._segments[0] < (timestamp - self._retention) // self._interval:
                self._drop_expired()
        elif timestamp < self.observed_time - self._retention:
            self._refuse(timestamp)
            return PUT_RETURN_CODE_NOT_PUT
        newest = self.newest(key)
        if newest is None:
            return self._put_older(key, value, timestamp, None)
        before, since = newest
        if timestamp < since:
            return self._put_older(key, value, timestamp, since)
        if timestamp > since:
            self._append(key, before, since, timestamp)
        self._newest_rows.put(key, value, timestamp)
        return PUT_RETURN_CODE_VALID_TO_UNDEFINED

    def delete(self, key: bytes, timestamp: int) -> Newest | None:
        """Puts a deletion; returns the value that was valid then, and since when."""
        valid = None if self.is_expired(timestamp) else self.as_of(key, timestamp)
        self.put(key, None, timestamp)
        return valid

    @property
    def oldest_time(self) -> int:
        """The time before which versions that were replaced cannot be read, and records are not put."""
        return self.observed_time - self._retention

    def is_expired(self, timestamp: int) -> bool:
        """Whether a record of that time would not be put."""
        return timestamp < self.oldest_time

    def between(self, key: bytes, time_from: int, time_to: int) -> list[tuple[bytes, int, int | None]]:
        """The values that a key had at any time between two, both inclusive: (value, since, until), in order of time.

        What was replaced before the retention is left out; the newest one never is.
        """
        newest = self.newest(key)
        found: list[tuple[bytes, int, int | None]] = []
        readable = self.oldest_time
        if time_to >= readable:
            first = max(time_from, readable)
            for segment in self._segments[bisect_left(self._segments, first // self._interval) :]:
                block = self._get(self._prefixes[segment] + key)
                if block is None:
                    continue
                found += [version for version in _kept(versions(block)) if version[1] <= time_to and version[2] > first]
                if last_time(block)[0] > time_to:
                    break
        if newest is not None and newest[1] <= time_to:
            found.append((*newest, None))
        return found

    def timeline(self, key: bytes, time_from: int, time_to: int) -> list[tuple[int, bytes | None]]:
        """The versions of a key between two times, both inclusive: (since, value or ``None``), in order of time.

        Each is valid until the next one. The first was valid at ``time_from``, or is the first that is known: empty
        where the history of all that time has expired.
        """
        newest = self.newest(key)
        first = max(time_from, self.oldest_time)
        if newest is not None and newest[1] <= first:
            return [(newest[1], newest[0])] if newest[1] <= time_to else []
        found: dict[int, bytes | None] = {}
        if time_to >= first:
            for segment in self._segments[bisect_left(self._segments, first // self._interval) :]:
                block = self._get(self._prefixes[segment] + key)
                if block is None:
                    continue
                found |= {start: value for value, start, end in versions(block) if end > first and start <= time_to}
                last = last_time(block)[0]
                if last > time_to:
                    break
                if last >= first:
                    found[last] = None
            if next(iter(found), time_to + 1) > first:
                found = {first: None, **found}
        if newest is not None and newest[1] <= time_to:
            found[newest[1]] = newest[0]
        return list(found.items())

    def end_of(self, key: bytes, time: int) -> int | None:
        """Until when what a key was at a time is valid; ``None`` where nothing has replaced it."""
        newest = self.newest(key)
        until = None if newest is None else newest[1]
        if until is not None and until <= time:
            return None
        found = self._block_after(key, time, until)
        if found is None:
            return until
        first = bounds(found[1])[1]
        return first if first > time else index_at(found[1], time)[2]

    def rows(self) -> Iterator[RawVersion]:
        """Every version that can be read, by key and then by time."""
        scan, readable = self._engine.scan, self.oldest_time
        found = [
            RawVersion(key[_KEY_AT:], value, start, end)
            for key, block in scan(_BLOCKS, _STREAM_TIME, False)
            if int.from_bytes(key[_SEGMENT_AT:_KEY_AT]) in self._prefixes
            for value, start, end in _kept(versions(block))
            if end > readable
        ]
        found += [RawVersion(key, value, since, None) for key, value, since in self._newest_rows.rows()]
        return iter(sorted(found, key=lambda row: (row.key, row.timestamp)))

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        """Puts records of the changelog, each as it was put once.

        A source topic that serves as one may have records from before all time; here they are of its beginning.
        """
        count, self._count_late = self._count_late, _ignore
        warned, self._warned_put = self._warned_put, True
        put = self.put
        for key, value, timestamp, _ in rows:
            put(key, value, timestamp if timestamp > 0 else 0)
        self._count_late, self._warned_put = count, warned
        self.commit(None)

    def restore_keys(self, rows: Sequence[ChangelogRow]) -> None:
        """Puts whole keys, one after the other, those of a key in order of time: nothing is too late.

        What another key has in later times must not count: in order of time it would have come after. For a part of the
        keys of a store: stream time is that of all parts, so it is not kept here (``advance`` and ``commit`` do).
        """
        highest, before = self.observed_time, None
        for key, value, timestamp, _ in rows:
            if key != before:
                highest = max(highest, self.observed_time)
                before, self.observed_time = key, NO_TIME
            self.put(key, value, timestamp)
        self.observed_time, self._kept_time = max(highest, self.observed_time), NO_TIME
        self._put(_STREAM_TIME, None)
        self._engine.commit(None)

    def advance(self, time: int) -> None:
        """Observes a time that was put elsewhere, and drops what is too old by it."""
        if time > self.observed_time:
            self.observed_time = time
            self._drop_expired()

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
                self._newest_rows.put(key, value, timestamp)
            return PUT_RETURN_CODE_VALID_TO_UNDEFINED
        block_key = self._segment_prefix(until // self._interval) + key
        kept = self._get(block_key)
        if kept is None:
            self._put(block_key, single(value, timestamp, until))
        elif last_time(kept)[0] <= timestamp:
            self._put(block_key, appended(kept, value, timestamp, until))
        else:
            self._put(block_key, prepended(kept, value, timestamp))
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
        """Keeps a version that ends later than every other of its segment.

        Those before it ended when it started or earlier, so that a segment that began later has none of them.
        """
        segment = end // self._interval
        block_key = (self._prefixes.get(segment) or self._segment_prefix(segment)) + key
        block = self._get(block_key) if start // self._interval == segment else None
        self._put(block_key, single(value, start, end) if block is None else appended(block, value, start, end))

    def _delete_newest(self, key: bytes, timestamp: int) -> None:
        """Remembers a deletion of a key that has no newest value."""
        block_key = self._segment_prefix(timestamp // self._interval) + key
        block = self._get(block_key)
        if block is None:
            self._put(block_key, deleted_at(timestamp))
            return
        last = last_time(block)[0]
        if last != timestamp:
            self._put(block_key, appended(block, None, last, timestamp))

    def _block_after(self, key: bytes, time: int, until: int | None) -> tuple[int, bytes] | None:
        """The block of the first version that ended after a time, with its segment.

        Looks from that time on where many versions are likely to be, then from the newest one back.
        """
        segments, prefixes, get, interval = self._segments, self._prefixes, self._get, self._interval
        if not segments:
            return None
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

    def _segment_prefix(self, segment: int) -> bytes:
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
            self._segment_prefix(segment)
            cursor = _prefix(segment + 1)

    def _drop_expired(self) -> None:
        oldest = self.oldest_time // self._interval
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
        self._count_late(self._name)
        if self._warned_put:
            return
        self._warned_put = True
        log.warning(
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
        log.warning(
            "versioned store %r of task %s was asked for a value as of %d, which is older than its newest record (%d) "
            "by more than its history retention of %d ms: it finds nothing there but versions that are still valid. "
            "Give the store a longer retention if such reads matter",
            self._name,
            self._task_id,
            time,
            self.observed_time,
            self._retention,
        )


def _ignore(store_name: str) -> None:
    """Counts nothing: what a changelog has was counted when it was put."""


def _prefix(segment: int) -> bytes:
    return _BLOCKS + segment.to_bytes(_STAMP_BYTES)


def _kept(found: list[Version]) -> Iterator[tuple[bytes, int, int]]:
    """Versions without the deletions."""
    return ((value, start, end) for value, start, end in found if value is not None)
