"""The scans over the rows of a RocksDB.

A scan is ended by RocksDB at its upper bound, so that it reads no block, and walks over no deleted rows, beyond it. A
store with a prefix extractor (``prefix_bytes``) looks for keys of one prefix in those files only whose bloom filters
know it; every other scan of it is made to heed the order of all keys, without which RocksDB leaves rows out.

Invariant: a scan ends behind its last row only; one under way when its database is closed fails at the next row.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Final, TypeAlias, cast

from rocksdict import Rdict, RdictIter, ReadOptions

from pykstreams.state.engines.rocksdb_errors import EnginePlace, not_open
from pykstreams.state.interfaces.engine import Row, after, prefix_end

_ROWS_AT_ONCE: Final = 32  # a scan of fewer rows leaves no iterator open

_Scan: TypeAlias = Generator[Row, None, None]

_NO_ROW: Final[Row] = (b"", b"")  # a scan stops at it for this module, which takes it


class _DatabaseClosedError(Exception):
    """Thrown into a scan that is under way."""


class RocksDbScans:
    """The scans of one RocksDB, from when it is opened until ``close``.

    :param prefix_bytes: how many bytes its prefix extractor takes; ``None`` without one.
    :param place: where it lies, for errors.
    """

    __slots__ = ("_all_keys", "_db", "_one_prefix", "_place", "_prefix_bytes", "_under_way")

    def __init__(self, db: Rdict, prefix_bytes: int | None, place: EnginePlace) -> None:
        self._db = db
        self._prefix_bytes = prefix_bytes
        self._place = place
        self._all_keys, self._one_prefix = ReadOptions(), ReadOptions()
        if prefix_bytes is not None:
            self._all_keys.set_total_order_seek(True)
            self._one_prefix.set_prefix_same_as_start(True)
        self._under_way: weakref.WeakSet[_Scan] = weakref.WeakSet()

    def between(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        """Begins a scan of the rows from ``lower`` up to ``upper``, which is left out, upwards or downwards."""
        if reverse:
            return self._down(lower, upper)
        db = self._db
        bounds = self._bounds(lower, upper)  # must outlive the iterators, which read the bound in it
        begin = db.iter(bounds)
        begin.seek_to_first() if lower is None else begin.seek(lower)
        valid, key, value, advance = begin.valid, begin.key, begin.value, begin.next
        rows: list[Row] = []
        while valid():
            if len(rows) == _ROWS_AT_ONCE:
                rest = db.items(from_key=key(), read_opt=bounds)
                return self._closed_with_all(self._first_then(rows, cast("Iterator[Row]", rest), bounds))
            rows.append((key(), value()))
            advance()
        self._check_end(begin)
        return iter(rows)

    def _down(self, lower: bytes | None, upper: bytes | None) -> Iterator[Row]:
        db = self._db
        begin = db.iter(self._all_keys)
        valid, key, value, advance = begin.valid, begin.key, begin.value, begin.prev
        if upper is None:
            begin.seek_to_last()
        else:
            begin.seek_for_prev(upper)
            if valid() and key() == upper:
                advance()
        rows: list[Row] = []
        while valid():
            found = key()
            if lower is not None and found < lower:
                return iter(rows)
            if len(rows) == _ROWS_AT_ONCE:
                rest = db.items(backwards=True, from_key=found, read_opt=self._all_keys)
                return self._closed_with_all(self._downwards(rows, cast("Iterator[Row]", rest), lower))
            rows.append((found, value()))
            advance()
        self._check_end(begin)
        return iter(rows)

    def close(self) -> None:
        """Takes their iterators from the scans that are under way, which would keep the files open."""
        under_way, self._under_way = list(self._under_way), weakref.WeakSet()
        for scan in under_way:
            with suppress(_DatabaseClosedError):  # comes back from one that is at its end
                scan.throw(_DatabaseClosedError)

    def _downwards(self, first: list[Row], rest: Iterator[Row], lower: bytes | None) -> _Scan:
        """Goes on behind the first rows."""
        store = self._place.store
        try:
            yield _NO_ROW
            yield from first
            last = first[-1][0]
            for row in rest:
                last = row[0]
                if lower is not None and last < lower:
                    return
                yield row
            end = self._db.iter(self._all_keys)
            end.seek_for_prev(last)
            if end.valid():
                end.prev()
            self._check_end(end)
            return
        except _DatabaseClosedError:
            del rest, self
        yield _NO_ROW
        raise not_open(store)

    def _first_then(self, first: list[Row], rest: Iterator[Row], bounds: ReadOptions) -> _Scan:
        """Goes on behind the first rows; ``bounds`` must be kept until ``rest`` has gone.

        Freed before, its memory would be read all the same, and a scan would end anywhere, or not at all
        (``test_scan_ends_at_its_bound_whatever_memory_is_used_meanwhile``).
        """
        store = self._place.store
        try:
            yield _NO_ROW
            yield from first
            last = first[-1]
            for last in rest:
                yield last
            end = self._db.iter(bounds)
            end.seek(after(last[0]))
            self._check_end(end)
            return
        except _DatabaseClosedError:
            del rest, self
        yield _NO_ROW
        raise not_open(store)

    def _check_end(self, end: RdictIter) -> None:
        """Makes sure that an iterator is at the end of its rows, and not in front of one that cannot be read.

        It is not valid in either case; its status shows it. Iterators over items do not show theirs, so behind the last
        item another one looks at the same place.
        """
        try:
            end.status()
        except Exception as error:  # rocksdict raises plain Exception
            raise self._place.failed("read", error) from error

    def _bounds(self, lower: bytes | None, upper: bytes | None) -> ReadOptions:
        """The end of a scan upwards; its lower bound is where it starts (rocksdict sets the upper one in its place)."""
        if upper is None:
            return self._all_keys
        width = self._prefix_bytes
        if lower is not None and len(lower) == width and prefix_end(lower) == upper:
            return self._one_prefix
        bounded = ReadOptions()
        bounded.set_iterate_upper_bound(upper)
        if width is not None:
            bounded.set_total_order_seek(True)
        return bounded

    def _closed_with_all(self, scan: _Scan) -> Iterator[Row]:
        """Takes a generator, and brings it to where ``_DatabaseClosedError`` can be thrown into it."""
        next(scan)
        self._under_way.add(scan)
        return scan
