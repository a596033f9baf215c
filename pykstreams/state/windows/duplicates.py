"""Window stores that retain duplicates: every value that is put gets a key of its own, by a sequence number.

The store and its changelog count by themselves, and the changelog also counts ``None``, which the store does not
get (``RocksDBWindowStore``, ``ChangeLoggingWindowBytesStore``, 4.3.1). A store in memory numbers what it restores anew
(``InMemoryWindowStore``), one on disk keeps the numbers of the changelog.

A fresh store starts with 1, as in Kafka Streams. One that was reopened does not, other than there: it would give again
the numbers of rows that it holds, and a row would take the place of another with its key and window start. It goes on
after the offset that its changelog was committed with, which is higher, since each number stands for a record of the
changelog.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from pykstreams.core.types import Headers
from pykstreams.state.encoding.composed_keys import LAST_SEQUENCE
from pykstreams.state.encoding.parts import PutParts
from pykstreams.state.interfaces.engine import BytesStore
from pykstreams.state.interfaces.store import ChangelogWriter

_SEQUENCE: Final = struct.Struct(">i")
_WIDTH: Final = _SEQUENCE.size


class RetainedDuplicates:
    """Numbers each row of a window store with the next sequence number.

    :param persistent: ``get`` finds a key and window that the last put was for in a store on disk, and nothing in
        memory, where on the other hand putting ``None`` moves the time of the store on, too.
    """

    def __init__(self, below: BytesStore, *, persistent: bool) -> None:
        self._below = below
        self._persistent = persistent
        self._kept = _Counter()
        self._logged = _Counter()
        self.scan = below.scan
        self.put_parts = self._parts_putter(getattr(below, "put_parts", None))

    def get(self, key: bytes) -> bytes | None:
        return self._below.get(key[:-_WIDTH] + self._kept.last()) if self._persistent else None

    def put(self, key: bytes, packed: bytes | None) -> None:
        if packed is not None:
            self._below.put(key[:-_WIDTH] + self._kept.next(), packed)
        elif not self._persistent:
            self._below.put(key, None)

    def _parts_putter(self, put_below: PutParts | None) -> PutParts | None:
        """Makes ``put`` for rows in parts, where the layer below takes them so."""
        if put_below is None:
            return None
        next_number, persistent = self._kept.next, self._persistent

        def put_parts(key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
            if value is not None:
                put_below(key[:-_WIDTH] + next_number(), value, timestamp, headers)
            elif not persistent:
                put_below(key, None, timestamp, headers)

        return put_parts

    def logging(self, log: ChangelogWriter) -> ChangelogWriter:
        """Makes the writer that gives each changelog record the next sequence number."""
        next_number = self._logged.next

        def write(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
            log(key[:-_WIDTH] + next_number(), value, timestamp, headers)

        return write

    def reopened(self, offset: int) -> None:
        """Notes the offset of its changelog with which the store was committed before."""
        self._kept.go_on_after(offset + 1)
        self._logged.go_on_after(offset + 1)

    def restored(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        """Returns the keys under which rows from the changelog are kept."""
        number = max((_SEQUENCE.unpack(key[-_WIDTH:])[0] for key in keys), default=0)
        self._logged.go_on_after(number)
        if not self._persistent:
            return [key[:-_WIDTH] + self._kept.next() for key in keys]
        self._kept.go_on_after(number)
        return keys


class _Counter:
    """A sequence number, as the end of a key."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = 0

    def last(self) -> bytes:
        return _SEQUENCE.pack(self._number)

    def next(self) -> bytes:
        self._number = self._number + 1 & LAST_SEQUENCE
        return _SEQUENCE.pack(self._number)

    def go_on_after(self, number: int) -> None:
        self._number = max(self._number, number & LAST_SEQUENCE)
