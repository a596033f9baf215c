"""The newest value of each key of a versioned store: a row of the engine, and at hand if it was used lately.

Nearly every put and read of a versioned store begins with this row. Those used last are kept as values and times, in
two generations: what is asked for moves to the young one, and when that is full it becomes the old one, which goes.
So asking costs a look-up, and nothing has to be kept in order. Of keys that are not at hand one in eight is taken in
when it is asked for: where there are more keys than can be at hand, most of the work of taking in would be in vain.

Rows in the engine: ``00 | key`` with ``time (8, big-endian) | newest value``.

Invariant: what is at hand is what the engine has, ``None`` where it has no row; a key is in one generation at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, TypeAlias

from pykstreams.state.interfaces.engine import Engine

AT_HAND_BYTES: Final = 16 << 20
"""About how many bytes of one store are at hand at most."""

FIRST_ROW: Final = b"\0"
AFTER_ROWS: Final = b"\1"

Newest: TypeAlias = tuple[bytes, int]
"""A value and since when."""

_STAMP: Final = Struct(">q")
_STAMP_BYTES: Final = _STAMP.size
_ENTRY_BYTES: Final = 256  # what an entry costs besides its key and value, about
_TAKEN_ONE_OF: Final = 8
_NOT_KNOWN: Final = (b"", -1)

_stamp_of = _STAMP.unpack_from


class NewestRows:
    """The newest values of the keys of one store. An engine in memory is at hand itself."""

    def __init__(self, engine: Engine, at_hand_bytes: int = AT_HAND_BYTES) -> None:
        self._engine = engine
        self._half = at_hand_bytes // 2 if engine.persistent else 0
        self._forget()

    def _forget(self) -> None:
        self._young: dict[bytes, Newest | None] = {}
        self._old: dict[bytes, Newest | None] = {}
        self._bytes = 0
        self._missed = 0

    def open(self) -> None:
        """Begins anew over an engine that was opened."""
        self._read, self._write = self._engine.get, self._engine.put
        self._forget()

    def get(self, key: bytes) -> Newest | None:
        """The newest value of a key."""
        found = self._young.get(key, _NOT_KNOWN)
        if found is not _NOT_KNOWN:
            return found
        if key in self._old:
            found = self._old.pop(key)
            self._take_in(key, found)
            return found
        row = self._read(FIRST_ROW + key)
        found = None if row is None else (row[_STAMP_BYTES:], _stamp_of(row)[0])
        self._missed += 1
        if self._missed == _TAKEN_ONE_OF:
            self._missed = 0
            self._take_in(key, found)
        return found

    def put(self, key: bytes, value: bytes | None, since: int) -> None:
        """Sets the newest value of a key that was just asked for; ``None`` deletes."""
        self._write(FIRST_ROW + key, None if value is None else _STAMP.pack(since) + value)
        young = self._young
        if key in young:
            before = young[key]
            young[key] = None if value is None else (value, since)
            self._bytes += (0 if value is None else len(value)) - (0 if before is None else len(before[0]))
        else:
            self._old.pop(key, None)

    def _take_in(self, key: bytes, found: Newest | None) -> None:
        if self._bytes >= self._half:
            if not self._half:
                return
            self._old, self._young, self._bytes = self._young, {}, 0
        self._young[key] = found
        self._bytes += _ENTRY_BYTES + len(key) + (0 if found is None else len(found[0]))

    def rows(self) -> Iterator[tuple[bytes, bytes, int]]:
        """Every key with its newest value and since when, in order of keys."""
        for key, row in self._engine.scan(FIRST_ROW, AFTER_ROWS, False):
            yield key[len(FIRST_ROW) :], row[_STAMP_BYTES:], _stamp_of(row)[0]
