"""Changelog records that wait until what was sent before them has been taken.

Under at-least-once a worker that dies leaves what its producer happened to have sent. Where the changelog of a table
has a row's change and a topic lacks the deletion that went with it, nobody knows any more what is to be deleted:
records are read again, but the store has forgotten what the row was before. So it is with records that have waited in a
store, and have left it with a result that was not sent. In tasks that send such deletions or results changelogs stay
behind.

Invariant: when a changelog record is sent, all that was sent before the record came here has been taken by the brokers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pykstreams.core.ids import TaskId
from pykstreams.core.kept_bytes import kept
from pykstreams.core.types import Headers
from pykstreams.state.interfaces.store import ChangelogWriter

MOST_HELD = 20_000
"""How many wait at most, but for those of one turn of the worker; then it waits for the brokers in between commits."""


class HeldRecord(NamedTuple):
    """In the order of ``RecordCollector.produce_when_there_is_room``."""

    topic: str
    value: bytes | None
    key: bytes
    partition: int
    timestamp: int | None
    headers: Headers


class HeldChangelogs:
    """The waiting records, by task. They come and go on the worker's thread; tasks also on the state updater's."""

    def __init__(self) -> None:
        self._held: dict[TaskId, list[HeldRecord]] = {}

    def __len__(self) -> int:
        return sum(map(len, list(self._held.values())))

    def writer(self, task_id: TaskId, topic: str, partition: int) -> ChangelogWriter:
        """Returns the callable by which a store writes to its changelog."""
        hold = self._held.setdefault(task_id, []).append

        def write(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
            hold(HeldRecord(topic, None if value is None else kept(value), key, partition, timestamp, headers))

        return write

    def let_go(self, send: Callable[[str, bytes | None, bytes, int, int | None, Headers], None]) -> None:
        """Sends all that waits, each task's records in order; what raises goes on waiting, with all behind it."""
        for held in list(self._held.values()):
            sent = 0
            try:
                for record in held.copy():
                    send(*record)
                    sent += 1
            finally:
                del held[:sent]

    def forget(self, task_id: TaskId) -> None:
        """Drops what a task that closes has not committed: it is done again."""
        self._held.pop(task_id, None)
