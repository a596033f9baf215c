"""The tasks of a worker that wait for their committed offsets, because a transaction commits them that is still open.

Brokers end a transaction that its producer has left, by its time-out; one whose markers a broker failed to write stays
open for ever. Each task waits by itself, up to ``task.timeout.ms`` (``StreamTask.initializeMetadata``, 4.3.1), and
tasks whose offsets are settled are opened meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.outage import Outage

PATIENCE_S: Final = 15.0
"""How long tasks may wait before it is worth a line; transactions of workers last 10 s by default."""

ASK_EVERY_S: Final = 0.1
"""How often they are asked for again; the worker serves nobody while it asks, and other tasks of it may run."""


class UnsettledOffsets:
    """The tasks of one worker that wait; for its thread only.

    :param give_up_s: ``task.timeout.ms`` in seconds.
    """

    def __init__(self, group: str, clock: Clock, give_up_s: float) -> None:
        self._clock = clock
        self._outage = Outage(
            f"requests for the committed offsets of group {group!r}", clock, give_up_s, patience_s=PATIENCE_S
        )
        self._waiting: dict[TaskId, frozenset[TopicPartition]] = {}
        self._ask_at = 0.0

    def due(self, closed: Collection[TaskId]) -> list[TaskId]:
        """Returns the tasks to ask for now, of all that are to be opened; others that have waited wait no more."""
        stays = {task_id: places for task_id, places in self._waiting.items() if task_id in closed}
        if len(stays) < len(self._waiting):
            self._wait_for(stays)
        if self._clock.monotonic() >= self._ask_at:
            return list(closed)
        return [task_id for task_id in closed if task_id not in self._waiting]

    def not_answered(self) -> None:
        """Notes that the brokers have not answered; ``ClusterError`` when that has lasted for ``task.timeout.ms``."""
        self._outage.failed("the coordinator of the group does not answer; look at the broker that coordinates it")

    def settled(
        self, asked: Mapping[TaskId, frozenset[TopicPartition]], unsettled: Collection[TopicPartition]
    ) -> list[TaskId]:
        """Returns those tasks of which all offsets are settled, in the order in which they were asked for.

        The others wait; ``ClusterError`` when that has lasted for ``task.timeout.ms``.
        """
        found = {task_id: places.intersection(unsettled) for task_id, places in asked.items()}
        others = {task_id: places for task_id, places in self._waiting.items() if task_id not in asked}
        self._wait_for(others | {task_id: places for task_id, places in found.items() if places})
        if self._waiting:
            self._ask_at = self._clock.monotonic() + ASK_EVERY_S
            self._outage.failed(self._reason())
        return [task_id for task_id, places in found.items() if not places]

    def _wait_for(self, waiting: dict[TaskId, frozenset[TopicPartition]]) -> None:
        if not waiting.keys() & self._waiting.keys():  # none has waited before: their time begins
            self._outage.over()
        self._waiting = waiting

    def _reason(self) -> str:
        places = sorted(frozenset().union(*self._waiting.values()))
        return (
            f"tasks {', '.join(map(str, sorted(self._waiting)))} wait for those of {', '.join(map(str, places))}, "
            "which are in a transaction that is still open. They go on when the brokers end it (transaction.timeout.ms "
            "of the producer that has left it). One that stays open longer is found with `kafka-transactions.sh "
            "find-hanging --topic __consumer_offsets`, and ended with `kafka-transactions.sh abort`"
        )
