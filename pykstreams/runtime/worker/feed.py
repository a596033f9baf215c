"""Feeds the tasks of a worker with the records of their inputs, and pauses the inputs that are far ahead."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.consumers.lost_positions import LostPositions
from pykstreams.runtime.clients.consumers.messages import HELD_UP, Fetched
from pykstreams.runtime.key_places.key_watch import KeyWatch
from pykstreams.runtime.worker.task_manager import TaskManager

log = logging.getLogger(__name__)

PAUSE_FACTOR = 10
"""A partition is paused when it has so many times ``buffered.records.per.partition`` waiting: pausing is expensive."""

SOON_S = 0.01
"""How long one waits while something else is about to happen."""


class InputConsumer(Protocol):
    """The methods of the data consumer that the feed calls."""

    @property
    def paused(self) -> Collection[TopicPartition]: ...

    def fetch(self, timeout: float) -> Fetched: ...

    def seek(self, partition: TopicPartition, offset: int) -> None: ...

    def position(self, partition: TopicPartition) -> int | None: ...

    def end(self, partition: TopicPartition) -> int | None: ...

    def start(self, partition: TopicPartition) -> int | None: ...

    def pause(self, partitions: Collection[TopicPartition]) -> None: ...

    def resume(self, partitions: Collection[TopicPartition]) -> None: ...

    def close(self) -> None: ...


class Feed:
    """The records between the consumer of a worker and the queues of its tasks.

    :param woken: set, from any thread, when something that was in flight has finished.
    :param most: ``buffered.records.per.partition``.
    :param poll_s: the longest wait for records.
    :param key_watch: looks at some of the records that are read; ``None`` where it is switched off.
    """

    def __init__(
        self,
        reader: InputConsumer,
        tasks: TaskManager,
        lost_positions: LostPositions,
        woken: threading.Event,
        clock: Clock,
        *,
        most: int,
        poll_s: float,
        key_watch: KeyWatch | None = None,
    ) -> None:
        self._reader = reader
        self._tasks = tasks
        self._lost_positions = lost_positions
        self._woken = woken
        self._warnings = RepeatedWarnings(log, clock)
        self._resume_at = most
        self._pause_above = most * PAUSE_FACTOR
        self._poll_s = poll_s
        self._key_watch = key_watch

    def poll(self, patience_s: float, *, processes: bool = True) -> int:
        """Reads on, and returns how many messages came.

        It waits up to ``patience_s`` while there is nothing else to do, and not past an awaited result.

        :param processes: whether records that are there are processed next, and so are not to wait for others.
        """
        fetched = self._fetch(patience_s, processes=processes)
        self._add(fetched)
        self._lost_positions.settle(self._reader)
        return sum(map(len, fetched.runs.values()))

    def resume(self) -> None:
        """Reads paused partitions again that have room."""
        fed = self._tasks.by_partition
        self._reader.resume(
            [
                partition
                for partition in self._reader.paused
                if partition in fed and fed[partition].task.buffered_of(partition) <= self._resume_at
            ]
        )

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forgets that partitions stand still, whose task leaves."""
        self._lost_positions.forget(partitions)

    def _fetch(self, patience_s: float, *, processes: bool) -> Fetched:
        tasks = [running.task for running in self._tasks.running.values()]
        self._woken.clear()
        if processes and any(task.is_ready() for task in tasks):
            return self._reader.fetch(0)
        if any(task.unfinished for task in tasks):
            # results come from another thread, which cannot wake the consumer
            self._woken.wait(min(SOON_S, self._poll_s))
            return self._reader.fetch(0)
        return self._reader.fetch(patience_s)

    def _add(self, fetched: Fetched) -> None:
        full: list[TopicPartition] = []
        for (topic, number), messages in fetched.runs.items():
            partition = TopicPartition(topic, number)
            running = self._tasks.by_partition.get(partition)
            if running is None:  # its task left while the records were on their way
                continue
            if self._key_watch is not None:
                self._key_watch.look(partition, messages)
            running.task.add(partition, messages)
            if running.task.buffered_of(partition) > self._pause_above and partition not in self._reader.paused:
                full.append(partition)
        self._reader.pause(full)
        for partition, end in fetched.ends.items():
            if (running := self._tasks.by_partition.get(partition)) is not None:
                running.task.reached_end(partition, end)
        for what, reason in fetched.held_up.items():
            self._warnings.warn(what, HELD_UP, what, reason)
        self._lost_positions.read(fetched.runs)
        self._lost_positions.read(fetched.ends)
        for partition in fetched.lost_position:
            if partition in self._tasks.by_partition:
                self._lost_positions.note(partition)
