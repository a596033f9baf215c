"""How far the stores of one task are in their changelogs, for those who do not work on the stores.

Invariant: no store is behind the offset that is told of it while it is open, behind its durable offset when it was
closed, or behind its flushed one when the process was killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pykstreams.core.ids import TopicPartition


class CommittedStore(Protocol):
    """The methods of a store that are called here; see ``TaskStore``."""

    @property
    def name(self) -> str: ...

    @property
    def persistent(self) -> bool: ...

    def flushed_offset(self) -> int | None: ...


class StateOffsets:
    """The offsets of the stores with a changelog; ``note`` is for who works on the stores, the rest for any thread.

    :param changelogs: the changelog partition of each store that has one.
    """

    def __init__(self, changelogs: Mapping[str, TopicPartition]) -> None:
        self._changelogs = changelogs
        self._committed: dict[str, int] = {}
        self._durable: dict[str, int] = {}
        self._flushed: dict[str, int] = {}
        self._asked: set[str] = set()

    def opened(self, store: CommittedStore, offset: int | None) -> None:
        """Notes the offset that a store was found with when it was opened, so that it is on disk."""
        self.note(store, offset)
        if store.name in self._durable:
            self._flushed[store.name] = self._durable[store.name]

    def note(self, store: CommittedStore, offset: int | None) -> None:
        """Notes the offset that an open store was committed with; ``None``: there is no news."""
        name = store.name
        if offset is None or name not in self._changelogs:
            return
        self._committed[name] = offset
        if store.persistent:
            self._durable[name] = offset
        if name in self._asked:
            self._asked.discard(name)
            flushed = store.flushed_offset()
            if flushed is not None:
                self._flushed[name] = flushed

    def of(self, store: str) -> int | None:
        """The offset that a store was committed with last; ``None`` before its first commit."""
        return self._committed.get(store)

    def clear(self) -> None:
        """Forgets everything: the stores are opened anew."""
        for offsets in (self._committed, self._durable, self._flushed):
            offsets.clear()

    def committed(self) -> dict[TopicPartition, int]:
        """The offset of each store, those in memory included; 0 before its first commit."""
        committed = self._committed.copy()
        return {place: committed.get(name, 0) for name, place in self._changelogs.items()}

    def durable(self) -> dict[str, int]:
        """The offsets that are left of stores when they are closed without an error."""
        return self._durable.copy()

    def flushed(self) -> dict[str, int]:
        """The offsets that are left when the process is killed, or lower ones.

        Being asked for, they are found out anew at the next commit, by whoever works on the stores then.
        """
        self._asked = set(self._changelogs)
        return self._flushed.copy()
