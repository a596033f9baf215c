"""Rows in order of time that can be read by key, too, for sliding windows that are emitted when they are closed.

The second row of each row is a copy with the key ``segment (8), highest bit set | key | start (8) | sequence (4)``
(``RocksDBTimeOrderedWindowStore`` with its index, 4.3.1, which holds no values). Invariant: a row and its copy are
there together or not at all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from pykstreams.state.encoding.composed_keys import LAST_SEQUENCE, PREFIX_BYTES, number_of
from pykstreams.state.engines.second_rows import SecondRows, second_prefix
from pykstreams.state.interfaces.engine import Engine, Row, Write, after

_SUFFIX: Final = struct.Struct(">qi")
_SEQUENCE_BYTES: Final = 4


class KeyFirstCopies(SecondRows):
    """An engine with such copies; its scans show the rows in order of time only.

    :param interval_ms: how long the segments of the store are.
    """

    def __init__(self, engine: Engine, interval_ms: int) -> None:
        super().__init__(engine)
        self._interval = interval_ms

    def scan_key(self, key: bytes, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        """The rows of a user's key between two times, both inclusive, in order of time."""
        lower, upper = _SUFFIX.pack(time_from, 0), after(_SUFFIX.pack(time_to, LAST_SEQUENCE))
        width = PREFIX_BYTES + len(key) + _SUFFIX.size
        numbers = range(time_from // self._interval, time_to // self._interval + 1)
        for number in reversed(numbers) if reverse else numbers:
            beginning = second_prefix(number) + key
            for copy, packed in self._engine.scan(beginning + lower, beginning + upper, reverse):
                if len(copy) == width:
                    start = copy[-_SUFFIX.size : -_SEQUENCE_BYTES]
                    yield start + copy[PREFIX_BYTES:], packed

    def _second(self, key: bytes, packed: bytes | None) -> Write:
        return self._second_bound(key) + key[PREFIX_BYTES:], packed

    def _second_bound(self, bound: bytes) -> bytes:
        return second_prefix(number_of(bound) // self._interval)
