"""Rows in order of time that can be read by key, too, for sliding windows that are emitted when they are closed.

Beside each row lies a copy with the key ``segment (8), highest bit set | key | start (8) | sequence (4)``, in the same
engine, so that both are written in one batch (``RocksDBTimeOrderedWindowStore`` with its index, 4.3.1, which holds no
values). Invariant: a row and its copy are there together or not at all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from pykstreams.state.composed_keys import LAST_SEQUENCE, PREFIX_BYTES, number_of
from pykstreams.state.engine import Engine, Row, Write, after
from pykstreams.state.store import StoreContext

_COPIES: Final = 1 << 63
_PREFIX: Final = struct.Struct(">Q")
_FIRST_COPY: Final = _PREFIX.pack(_COPIES)
_SUFFIX: Final = struct.Struct(">qi")
_SEQUENCE_BYTES: Final = 4


class KeyFirstCopies:
    """An engine with such copies; its scans show the rows in order of time only.

    :param interval_ms: how long the segments of the store are.
    """

    def __init__(self, engine: Engine, interval_ms: int) -> None:
        self._engine = engine
        self._interval = interval_ms
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
        self._engine.put(self._copy_of(key), packed)
        self._engine.put(key, packed)

    def write(self, rows: Iterable[Write]) -> None:
        self._engine.write([each for key, packed in rows for each in ((self._copy_of(key), packed), (key, packed))])

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        return self._engine.scan(lower, _FIRST_COPY if upper is None else min(upper, _FIRST_COPY), reverse)

    def scan_key(self, key: bytes, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        """The rows of a user's key between two times, both inclusive, in order of time."""
        lower, upper = _SUFFIX.pack(time_from, 0), after(_SUFFIX.pack(time_to, LAST_SEQUENCE))
        width = PREFIX_BYTES + len(key) + _SUFFIX.size
        numbers = range(time_from // self._interval, time_to // self._interval + 1)
        for number in reversed(numbers) if reverse else numbers:
            beginning = _PREFIX.pack(_COPIES + number) + key
            for copy, packed in self._engine.scan(beginning + lower, beginning + upper, reverse):
                if len(copy) == width:
                    start = copy[-_SUFFIX.size : -_SEQUENCE_BYTES]
                    yield start + copy[PREFIX_BYTES:], packed

    def drop(self, lower: bytes, upper: bytes) -> None:
        self._engine.drop(lower, upper)
        self._engine.drop(self._segment_of(lower), self._segment_of(upper))

    def approximate_num_entries(self) -> int:
        return self._engine.approximate_num_entries() // 2

    def _copy_of(self, composed: bytes) -> bytes:
        return self._segment_of(composed) + composed[PREFIX_BYTES:]

    def _segment_of(self, composed: bytes) -> bytes:
        return _PREFIX.pack(_COPIES + number_of(composed) // self._interval)
