"""The tasks whose stores one thread opens and closes: how far they are, and the checkpoints in their folders.

A checkpoint is for those who look for state that nobody has open (``StateDirectory.free_checkpoints``). It is written
when the stores were opened, when they were closed, and now and then meanwhile, for the case that the process is killed.
Only what is on disk then counts in it, and that is less than what was committed: RocksDB has no log here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.state.directory.task_checkpoint import read_checkpoint, write_checkpoint

log = logging.getLogger(__name__)

CHECKPOINT_S: Final = 10.0
"""How often checkpoints are written while stores are open, where anything has changed."""


class Offsets(Protocol):
    """The offsets of a task's stores; see ``StateOffsets``."""

    def committed(self) -> Mapping[TopicPartition, int]: ...

    def durable(self) -> Mapping[str, int]: ...

    def flushed(self) -> Mapping[str, int]: ...


class TaskWithStores(Protocol):
    """The part of a task that this module needs."""

    @property
    def id(self) -> TaskId: ...

    @property
    def state_offsets(self) -> Offsets: ...


class OpenTasks:
    """The tasks of one thread; ``sums`` is for any other.

    :param folder: the folder of a task, whose lock the thread holds while the task is here.
    """

    def __init__(self, folder: Callable[[TaskId], Path], clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._tasks: dict[TaskId, TaskWithStores] = {}
        self._written: dict[TaskId, Mapping[str, int]] = {}
        self._due_at = clock.monotonic() + CHECKPOINT_S
        self._failed = RepeatedWarnings(log, clock)

    @property
    def due_in_s(self) -> float | None:
        """How long until checkpoints may have to be written; ``None`` without a task."""
        return max(0.0, self._due_at - self._clock.monotonic()) if self._tasks else None

    def add(self, task: TaskWithStores) -> None:
        """Adds a task whose stores were opened, or left open by another."""
        self._written[task.id] = read_checkpoint(self._folder(task.id))
        self._tasks[task.id] = task
        self._write(task.id, task.state_offsets.flushed())

    @contextmanager
    def closing(self, task: TaskWithStores) -> Iterator[None]:
        """Lets go of a task whose stores are closed inside; what they leave is written, unless that fails."""
        durable = task.state_offsets.durable()
        try:
            yield
            if task.id in self._tasks:
                self._write(task.id, durable)
        finally:
            self._tasks.pop(task.id, None)
            self._written.pop(task.id, None)

    def forget(self, task: TaskWithStores) -> None:
        """Lets go of a task whose stores stay open; what of them is on disk was written before."""
        self._tasks.pop(task.id, None)
        self._written.pop(task.id, None)

    def keep(self) -> None:
        """Writes checkpoints, when that is due."""
        if self._clock.monotonic() < self._due_at:
            return
        self._due_at = self._clock.monotonic() + CHECKPOINT_S
        for task_id, task in self._tasks.items():
            self._write(task_id, task.state_offsets.flushed())

    def sums(self, positions: Mapping[TopicPartition, int]) -> dict[TaskId, int]:
        """The sum of the offsets that the stores of each task have come to.

        :param positions: how far the changelogs are that are being read, which may be further than the last commit.
        """
        found = {}
        for task_id, task in self._tasks.copy().items():
            committed = task.state_offsets.committed()
            if committed:
                found[task_id] = sum(max(offset, positions.get(place, 0)) for place, offset in committed.items())
        return found

    def _write(self, task_id: TaskId, offsets: Mapping[str, int]) -> None:
        if offsets == self._written[task_id]:
            return
        try:
            write_checkpoint(self._folder(task_id), offsets)
        except OSError as error:  # the one before stays, which most often tells of less than there is
            self._failed.warn("checkpoint", "task %s: its checkpoint is not written: %s", task_id, error)
        else:
            self._written[task_id] = offsets
