"""The index of a table whose rows have a time to live: its keys in the order of the times of their rows.

The layout, here and in the changelog, big-endian::

    key      timestamp of the row (8) | key
    value    when the task that wrote the entry began (8), wall-clock ms

A row has at least one entry, whose time is at most its own. So a row that gets a later time needs no new entry: the one
it has is moved on when somebody comes to it. An entry of a row that is gone, or that has become older, is stale, and
found to be so then.

Invariant: an entry that was worked off is taken away only when a commit has shown that the deletion of its row was
sent. Until then it stays in the engine and the changelog, below ``_from``, from which on is read.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from pykstreams.core.types import Headers
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.serdes.primitives import BytesSerde
from pykstreams.state.buffers.logged_buffer import BufferSupplier, LoggedBuffer
from pykstreams.state.interfaces.engine import Engine, after
from pykstreams.state.key_values.suppliers import InMemoryKeyValueSupplier
from pykstreams.state.spec import StoreBuilder

_TIME: Final = struct.Struct(">q")
_START: Final = b""


class Entry(NamedTuple):
    """A key, and a time at or before that of its row; ``place`` is the index's own.

    ``before`` says that it was written before the task began here.
    """

    place: bytes
    time: int
    key: object
    before: bool


class ExpiryIndex(LoggedBuffer):
    """The store, which only the operator of its table uses; made by ``expiry_index``."""

    def __init__(self, name: str, key_serde: SerdeOrDefault, engine: Engine, *, logging: bool = True) -> None:
        super().__init__(name, (key_serde, BytesSerde()), engine, owner="time to live", logging=logging)
        self._began = b""
        self._from = _START
        self._done: set[bytes] = set()
        """Entries worked off since the last flush."""
        self._told: set[bytes] = set()
        """Those before, of which the commit that comes tells."""
        self._sent: set[bytes] = set()
        """Those of which a commit has told."""

    def begin(self, now: int) -> None:
        """Begins a task at that wall-clock time; before the first use."""
        began = _TIME.pack(now)
        if not self._begun:
            self._began = began
        self._begin()

    def note(self, key: object, time: int, headers: Headers) -> None:
        """Adds an entry."""
        self.note_bytes(self._encode_key(key, headers), time)

    def note_bytes(self, key: bytes, time: int) -> None:
        """Adds an entry of a key in bytes."""
        place = _TIME.pack(time) + key
        for worked_off in (self._done, self._told, self._sent):
            worked_off.discard(place)
        if place < self._from:
            self._from = place
        self._engine.put(place, self._began)
        self._write_log(place, self._began)

    def first(self) -> int | None:
        """The time of the first entry that was not worked off, ``None`` where there is none."""
        row = next(self._engine.scan(self._from, None, False), None)
        return None if row is None else _TIME.unpack_from(row[0])[0]

    def until(self, time: int, most: int) -> list[Entry]:
        """The first entries up to that time, at most so many."""
        found: list[Entry] = []
        for place, began in self._engine.scan(self._from, _TIME.pack(time + 1), False):
            key = self._decode_key(place[_TIME.size :], ())
            found.append(Entry(place, _TIME.unpack_from(place)[0], key, began != self._began))
            if len(found) == most:
                break
        return found

    def work_off(self, entry: Entry) -> None:
        """Notes that nothing is to be done for that entry, and for those before it, any more."""
        self._from = after(entry.place)
        self._done.add(entry.place)

    def flush_cache(self) -> None:
        """Removes the entries of which a commit has told."""
        for place in sorted(self._sent):
            self._engine.put(place, None)
            self._write_log(place, None)
        self._sent = set()
        self._told |= self._done
        self._done = set()

    def commit(self, changelog_offset: int | None) -> None:
        super().commit(changelog_offset)
        self._sent |= self._told
        self._told = set()

    def _take_up(self) -> None:
        self._from = _START
        self._done, self._told, self._sent = set(), set(), set()


def expiry_index(name: str, key_serde: SerdeOrDefault, *, in_memory: bool, logging: bool) -> StoreBuilder[ExpiryIndex]:
    """An index; a serde that is ``None`` is the default of the configuration."""
    supplier = InMemoryKeyValueSupplier(name) if in_memory else BufferSupplier(name)

    def make(builder: StoreBuilder[ExpiryIndex]) -> ExpiryIndex:
        return ExpiryIndex(name, key_serde, builder.supplier.get(), logging=builder.logging)

    return StoreBuilder(supplier, make, key_serde, BytesSerde(), False, logging)
