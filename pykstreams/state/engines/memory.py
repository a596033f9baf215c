"""Engines in memory: a sorted map, and a map that keeps only the entries used last.

Nothing here outlives the process: there is no committed offset, and the whole changelog is read at the start.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pykstreams.state.encoding.composed_keys import prefix_of
from pykstreams.state.engines.ordered import KeyIndex, OrderedKeys
from pykstreams.state.interfaces.engine import Row, Write
from pykstreams.state.interfaces.store import StoreContext

_END_OF_PREFIX: Final = struct.Struct(">Q")  # unlike a prefix it may be one beyond the largest time


class _Memory:
    """The base of both engines in memory."""

    persistent: bool = False
    uncommitted_bytes = 0

    _rows: dict[bytes, bytes]
    _keys: OrderedKeys

    def open(self, context: StoreContext) -> None:
        """There is nothing to open."""

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        rows = self._rows
        return iter([(key, rows[key]) for key in self._keys.between(lower, upper, reverse)])

    def drop(self, lower: bytes, upper: bytes) -> None:
        rows, discard = self._rows, self._keys.discard
        for key in self._keys.between(lower, upper, False):
            del rows[key]
            discard(key)

    def end_restore(self) -> None:
        """There is nothing to make ready."""

    def commit(self, offset: int | None) -> None:
        """There is nothing to keep."""

    def committed_offset(self) -> int | None:
        return None

    def flushed_offset(self) -> int | None:
        return None

    def approximate_num_entries(self) -> int:
        return len(self._rows)

    def property_value(self, name: str) -> int | None:
        return None

    def statistics(self) -> str | None:
        return None

    def close(self) -> None:
        self._rows.clear()
        self._keys.clear()


class MemoryEngine(_Memory):
    """Every row in a dict (``InMemoryKeyValueStore``, 4.3.1)."""

    def __init__(self) -> None:
        self._rows = {}
        self._keys = OrderedKeys(self._rows)
        self.get = self._rows.get

    def put(self, key: bytes, packed: bytes | None) -> None:
        rows = self._rows
        if packed is None:
            if rows.pop(key, None) is not None:
                self._keys.discard(key)
        elif key in rows:
            rows[key] = packed
        else:
            rows[key] = packed
            self._keys.add(key)

    def write(self, rows: Iterable[Write]) -> None:
        kept = self._rows
        self._keys.clear()
        for key, packed in rows:
            if packed is None:
                kept.pop(key, None)
            else:
                kept[key] = packed


class KeyedMemoryEngine(MemoryEngine):
    """Rows in order of time that can be read by key, too, without looking at those of other keys.

    :param part: where in a composed key the user's key is.
    """

    def __init__(self, part: slice) -> None:
        super().__init__()
        self._by_key = KeyIndex(self._rows, part)

    def put(self, key: bytes, packed: bytes | None) -> None:
        index = self._by_key
        if index.awake and (key in self._rows) != (packed is not None):
            (index.add if packed is not None else index.discard)(key)
        super().put(key, packed)

    def scan_key(self, key: bytes, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        """The rows of a user's key between two times, both inclusive, in order of time."""
        rows = self._rows
        found = self._by_key.of(key, prefix_of(time_from), _END_OF_PREFIX.pack(time_to + 1), reverse)
        return iter([(composed, rows[composed]) for composed in found])

    def write(self, rows: Iterable[Write]) -> None:
        self._by_key.clear()
        super().write(rows)

    def drop(self, lower: bytes, upper: bytes) -> None:
        if self._by_key.awake:
            for key in self._keys.between(lower, upper, False):
                self._by_key.discard(key)
        super().drop(lower, upper)

    def close(self) -> None:
        self._by_key.clear()
        super().close()


class LruEngine(_Memory):
    """The ``limit`` rows that were read or written last (``MemoryLRUCache``, ``MemoryNavigableLRUCache``, 4.3.1).

    ``on_evict`` is notified of the key of each row that had to go, except while rows are read back from a changelog.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used: OrderedDict[bytes, bytes] = OrderedDict()
        self._rows = self._used
        self._keys = OrderedKeys(self._used)
        self.on_evict: Callable[[bytes], None] | None = None

    def get(self, key: bytes) -> bytes | None:
        packed = self._used.get(key)
        if packed is not None:
            self._used.move_to_end(key)
        return packed

    def put(self, key: bytes, packed: bytes | None) -> None:
        self._put(key, packed, self.on_evict)

    def write(self, rows: Iterable[Write]) -> None:
        for key, packed in rows:
            self._put(key, packed, None)

    def _put(self, key: bytes, packed: bytes | None, on_evict: Callable[[bytes], None] | None) -> None:
        rows = self._used
        if packed is None:
            if rows.pop(key, None) is not None:
                self._keys.discard(key)
            return
        if key in rows:
            rows[key] = packed
            rows.move_to_end(key)
            return
        rows[key] = packed
        self._keys.add(key)
        if len(rows) > self._limit:
            eldest, _ = rows.popitem(last=False)
            self._keys.discard(eldest)
            if on_evict is not None:
                on_evict(eldest)
