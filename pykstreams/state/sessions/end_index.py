"""An index of sessions by their end, for stores whose sessions are emitted when they are closed.

The second row of each session is an empty one with the key ``prefix (8), highest bit set | end (8) | start (8) | key``.
Invariant: an index row has its session, or none that is read (``RocksDBTimeOrderedSessionStore``, 4.3.1).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from pykstreams.state.encoding.composed_keys import LAST_TIME, PREFIX_BYTES, number_of, prefix_of
from pykstreams.state.engines.second_rows import SecondRows, number_of_second, second_prefix
from pykstreams.state.interfaces.engine import Engine, Row, Write

_LONG: Final = struct.Struct(">q")
_TIMES_BYTES: Final = 16


class EndIndex(SecondRows):
    """An engine with such an index; its scans show the sessions only."""

    def __init__(self, engine: Engine, prefix_ms: int) -> None:
        super().__init__(engine)
        self._prefix_ms = prefix_ms

    def ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]:
        """The sessions that end between two times, both inclusive, by end, start and key."""
        if latest_end < earliest_end:
            return
        lower, upper = self._end_bound(earliest_end), self._end_bound(min(latest_end, LAST_TIME - 1) + 1)
        for index_key, _ in self._engine.scan(lower, upper, False):
            times, key = index_key[PREFIX_BYTES:][:_TIMES_BYTES], index_key[PREFIX_BYTES + _TIMES_BYTES :]
            composed = prefix_of(number_of_second(index_key)) + key + times
            packed = self._engine.get(composed)
            if packed is not None:
                yield composed, packed

    def _end_bound(self, end: int) -> bytes:
        return second_prefix(end // self._prefix_ms) + _LONG.pack(end)

    def _second(self, key: bytes, packed: bytes | None) -> Write:
        index_key = self._second_bound(key) + key[-_TIMES_BYTES:] + key[PREFIX_BYTES:-_TIMES_BYTES]
        return index_key, None if packed is None else b""

    def _second_bound(self, bound: bytes) -> bytes:
        return second_prefix(number_of(bound))
