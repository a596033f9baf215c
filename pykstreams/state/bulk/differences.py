"""The rows to write to a changelog so that it equals another store: found by two scans in step.

Invariant: a changelog that says what the old store holds, and then is given these rows, says what the new one holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeAlias

from pykstreams.state.interfaces.engine import Row
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.state.layers.engine_store import EngineStore

CHUNK: Final = 2000
"""How many rows are read at a time."""

Turn: TypeAlias = Callable[[Callable[[], list[Row]]], list[Row]]
"""Runs a read while nobody else touches the store."""


def differences(
    old: EngineStore, new: EngineStore, turn: Turn, *, time: int, everything: bool = False
) -> Iterator[list[ChangelogRow]]:
    """Yields rows for the changelog in batches, which may be empty: one for each chunk of rows that was read.

    Both are stores of one builder, whose caches are empty, and which are not written to meanwhile.

    :param turn: goes through the gate of the old store, which others may read.
    :param time: of tombstones, and of rows that are kept without a time.
    :param everything: whether rows that are alike are given, too.
    """
    logged = _logged(new, time)
    theirs = _Rows(old, turn)
    for chunk in _chunks(new, lambda read: read()):
        found: list[ChangelogRow] = []
        for row in chunk:
            key = row[0]
            found += [logged(gone, None) for gone in theirs.before(key)]
            if theirs.take(key) != row[1] or everything:
                found.append(logged(*row))
        yield found
    while gone := theirs.rest():
        yield [logged(key, None) for key in gone]


class _Rows:
    """The rows of the old store, taken in the order of the keys of the new one."""

    def __init__(self, store: EngineStore, turn: Turn) -> None:
        self._chunks = _chunks(store, turn)
        self._rows: Iterator[Row] = iter(())
        self._head: Row | None = None
        self._next()

    def before(self, key: bytes) -> Iterator[bytes]:
        """Yields the keys that come before one, and leaves them behind."""
        while (head := self._head) is not None and head[0] < key:
            yield head[0]
            self._next()

    def take(self, key: bytes) -> bytes | None:
        """The row of that key, ``None`` without one."""
        head = self._head
        if head is None or head[0] != key:
            return None
        self._next()
        return head[1]

    def rest(self) -> list[bytes]:
        """Some of the keys that are left; none at the end."""
        found: list[bytes] = []
        while (head := self._head) is not None and len(found) < CHUNK:
            found.append(head[0])
            self._next()
        return found

    def _next(self) -> None:
        self._head = next(self._rows, None)
        if self._head is None and (chunk := next(self._chunks, None)):
            self._rows = iter(chunk)
            self._head = next(self._rows)


def _chunks(store: EngineStore, turn: Turn) -> Iterator[list[Row]]:
    rows: Iterator[Row] | None = None

    def read() -> list[Row]:
        nonlocal rows
        rows = rows or store.engine_rows()
        return list(islice(rows, CHUNK))

    while chunk := turn(read):
        yield chunk


def _logged(store: EngineStore, time: int) -> Callable[[bytes, bytes | None], ChangelogRow]:
    """Makes of a row of the engine, or of the key of one that is gone, the row that its changelog gets."""
    start, unpack = store.logged_from or 0, store.layout.unpack

    def logged(key: bytes, packed: bytes | None) -> ChangelogRow:
        if packed is None:
            return key[start:], None, time, ()
        value, timestamp, headers = unpack(packed)
        return key[start:], value, timestamp if timestamp >= 0 else time, headers

    return logged
