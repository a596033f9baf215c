"""An index of sessions by their end, for stores whose sessions are emitted when they are closed.

Beside the row of each session lies an empty one with the key ``prefix (8), highest bit set | end (8) | start (8) |
key``, in the same engine, so that both are written in one batch. Invariant: an index row has its session, or none that
is read (``RocksDBTimeOrderedSessionStore``, 4.3.1).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from pykstreams.state.composed_keys import LAST_TIME
from pykstreams.state.engine import Engine, Row, Write
from pykstreams.state.store import StoreContext

_INDEX: Final = 1 << 63
_PREFIX: Final = struct.Struct(">Q")
_INDEX_START: Final = _PREFIX.pack(_INDEX)
_LONG: Final = struct.Struct(">q")


class EndIndex:
    """An engine with such an index; its scans show the sessions only."""

    def __init__(self, engine: Engine, prefix_ms: int) -> None:
        self._engine = engine
        self._prefix_ms = prefix_ms
        self.persistent = engine.persistent
        self.end_restore = engine.end_restore
        self.commit = engine.commit
        self.committed_offset = engine.committed_offset
        self.close = engine.close
        self.get = engine.get

    @property
    def uncommitted_bytes(self) -> int:
        return self._engine.uncommitted_bytes

    def open(self, context: StoreContext) -> None:
        self._engine.open(context)
        self.get = self._engine.get

    def put(self, key: bytes, packed: bytes | None) -> None:
        self._engine.put(_index_key(key), None if packed is None else b"")
        self._engine.put(key, packed)

    def write(self, rows: Iterable[Write]) -> None:
        both: list[Write] = []
        for key, packed in rows:
            both.append((_index_key(key), None if packed is None else b""))
            both.append((key, packed))
        self._engine.write(both)

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        return self._engine.scan(lower, _INDEX_START if upper is None else min(upper, _INDEX_START), reverse)

    def ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]:
        """The sessions that end between two times, both inclusive, by end, start and key."""
        if latest_end < earliest_end:
            return
        lower, upper = self._index_bound(earliest_end), self._index_bound(min(latest_end, LAST_TIME - 1) + 1)
        for index_key, _ in self._engine.scan(lower, upper, False):
            end_and_start, key = index_key[8:24], index_key[24:]
            composed = _PREFIX.pack(_PREFIX.unpack_from(index_key)[0] - _INDEX) + key + end_and_start
            packed = self._engine.get(composed)
            if packed is not None:
                yield composed, packed

    def drop(self, lower: bytes, upper: bytes) -> None:
        self._engine.drop(lower, upper)
        self._engine.drop(_in_index(lower), _in_index(upper))

    def approximate_num_entries(self) -> int:
        return self._engine.approximate_num_entries() // 2

    def _index_bound(self, end: int) -> bytes:
        return _PREFIX.pack(_INDEX + end // self._prefix_ms) + _LONG.pack(end)


def _index_key(composed: bytes) -> bytes:
    return _in_index(composed[:8]) + composed[-16:] + composed[8:-16]


def _in_index(prefix: bytes) -> bytes:
    return _PREFIX.pack(_PREFIX.unpack(prefix)[0] + _INDEX)
