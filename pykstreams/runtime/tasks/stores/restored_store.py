"""A store while it is read back from its changelog, by another thread than those that read it.

Invariant: it is touched inside of the gate of its task, but for ``end_restore``: that takes long, and several stores
do it at the same time, so it has the store marked as one that nobody may read meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from pykstreams.runtime.tasks.gate import Gate
from pykstreams.runtime.tasks.stores.state_offsets import StateOffsets
from pykstreams.state.interfaces.store import ChangelogRow, TaskStore


class RestoredStore:
    """The part of a store that the restorer works on; its methods are those of ``TaskStore``.

    :param unreadable: the names of the stores of the task that nobody may read.
    :param offsets: where it is noted with which offsets they were committed.
    """

    __slots__ = ("_gate", "_offsets", "_store", "_unreadable", "name")

    def __init__(self, store: TaskStore, gate: Gate, unreadable: set[str], offsets: StateOffsets) -> None:
        self._store = store
        self._gate = gate
        self._unreadable = unreadable
        self._offsets = offsets
        self.name = store.name

    @property
    def persistent(self) -> bool:
        return self._store.persistent

    def committed_offset(self) -> int | None:
        return self._offsets.of(self.name)

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        with self._gate:
            self._store.restore(rows)

    def commit(self, changelog_offset: int | None) -> None:
        with self._gate:
            self._store.commit(changelog_offset)
            self._offsets.note(self._store, changelog_offset)

    def end_restore(self) -> None:
        with self._gate:
            self._unreadable.add(self.name)
        try:
            self._store.end_restore()
        finally:
            with self._gate:
                self._unreadable.discard(self.name)
