"""Window stores that retain duplicates: every value that is put gets a key of its own, by a sequence number.

The store and its changelog count by themselves, and the changelog also counts ``None``, of which the store does not
hear; both start at 0 when the store is opened (``RocksDBWindowStore``, ``ChangeLoggingWindowBytesStore``, 4.3.1). A
store in memory numbers what it restores anew (``InMemoryWindowStore``), one on disk keeps the numbers of the changelog.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from pykstreams.core.types import Headers
from pykstreams.state.composed_keys import LAST_SEQUENCE
from pykstreams.state.engine import BytesStore, Row
from pykstreams.state.store import ChangelogWriter

_SEQUENCE: Final = struct.Struct(">i")
_WIDTH: Final = _SEQUENCE.size


class RetainedDuplicates:
    """Gives each row of a window store the next sequence number.

    :param persistent: ``get`` finds a key and window that the last put was for in a store on disk, and nothing in
        memory, where on the other hand putting ``None`` moves the time of the store on, too.
    """

    def __init__(self, below: BytesStore, *, persistent: bool) -> None:
        self._below = below
        self._persistent = persistent
        self._sequence = 0

    def get(self, key: bytes) -> bytes | None:
        return self._below.get(key[:-_WIDTH] + _SEQUENCE.pack(self._sequence)) if self._persistent else None

    def put(self, key: bytes, packed: bytes | None) -> None:
        if packed is not None:
            self._below.put(key[:-_WIDTH] + self._next(), packed)
        elif not self._persistent:
            self._below.put(key[:-_WIDTH] + _SEQUENCE.pack(self._sequence + 1 & LAST_SEQUENCE), None)

    def restored(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        """The keys under which rows from the changelog are kept."""
        return keys if self._persistent else [key[:-_WIDTH] + self._next() for key in keys]

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        return self._below.scan(lower, upper, reverse)

    def _next(self) -> bytes:
        self._sequence = self._sequence + 1 & LAST_SEQUENCE
        return _SEQUENCE.pack(self._sequence)


def sequenced(log: ChangelogWriter) -> ChangelogWriter:
    """Gives each changelog record of a window store the next sequence number."""
    sequence = 0

    def write(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
        nonlocal sequence
        sequence = sequence + 1 & LAST_SEQUENCE
        log(key[:-_WIDTH] + _SEQUENCE.pack(sequence), value, timestamp, headers)

    return write
