"""The scans over the rows of a RocksDB.

A scan is ended by RocksDB at its upper bound, so that it reads no block, and walks over no deleted rows, beyond it. A
store with a prefix extractor (``prefix_bytes``) looks for keys of one prefix in those files only whose bloom filters
know it; every other scan of it is made to heed the order of all keys, without which RocksDB leaves rows out.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator
from typing import Final, TypeAlias, cast

from rocksdict import Rdict, RdictIter, ReadOptions

from pykstreams.state.engines.rocksdb_errors import EnginePlace
from pykstreams.state.interfaces.engine import Row, after, prefix_end

_ROWS_AT_ONCE: Final = 32  # a scan of fewer rows leaves no iterator open

_Scan: TypeAlias = Generator[Row, None, None]


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
        db = self._db
        if reverse:
            found = db.items(backwards=True, from_key=cast("bytes", upper), read_opt=self._all_keys)
            return self._ended_with_all(self._downwards(cast("Iterator[Row]", found), lower, upper))
        bounds = self._bounds(lower, upper)  # must outlive the iterators, which read the bound in it
        begin = db.iter(bounds)
        begin.seek_to_first() if lower is None else begin.seek(lower)
        valid, key, value, advance = begin.valid, begin.key, begin.value, begin.next
        rows: list[Row] = []
        while valid():
            if len(rows) == _ROWS_AT_ONCE:
                rest = db.items(from_key=key(), read_opt=bounds)
                return self._ended_with_all(self._first_then(rows, cast("Iterator[Row]", rest), bounds))
            rows.append((key(), value()))
            advance()
        self._check_end(begin)
        return iter(rows)

    def close(self) -> None:
        """Ends the scans that are under way, which would keep the files open."""
        for rows in list(self._under_way):
            rows.close()

    def _downwards(self, rows: Iterator[Row], lower: bytes | None, upper: bytes | None) -> _Scan:
        last = upper
        for row in rows:
            last = row[0]
            if lower is not None and last < lower:
                return
            if upper is None or last < upper:
                yield row
        end = self._db.iter(self._all_keys)
        end.seek_to_last() if last is None else end.seek_for_prev(last)
        if end.valid():
            end.prev()
        self._check_end(end)

    def _first_then(self, first: list[Row], rest: Iterator[Row], bounds: ReadOptions) -> _Scan:
        """Goes on behind the first rows; ``bounds`` must be kept until ``rest`` has gone.

        Freed before, its memory would be read all the same, and a scan would end anywhere, or not at all
        (``test_scan_ends_at_its_bound_whatever_memory_is_used_meanwhile``).
        """
        yield from first
        last = first[-1]
        for last in rest:
            yield last
        end = self._db.iter(bounds)
        end.seek(after(last[0]))
        self._check_end(end)

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

    def _ended_with_all(self, scan: _Scan) -> Iterator[Row]:
        """Takes a generator: closing one drops the iterator in it, which would keep the files open."""
        self._under_way.add(scan)
        return scan
