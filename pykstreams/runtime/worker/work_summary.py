"""A log line now and then that sums up what a worker has done (``StreamThread``, 4.3.1), and how far behind it is.

What tasks have dropped since the line before is not counted of those that have left meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TaskId

log = logging.getLogger(__name__)


class Dropped(Protocol):
    """The records that a task has dropped (``DroppedRecords``)."""

    @property
    def total(self) -> int: ...

    @property
    def late(self) -> int: ...

    def sum_up(self) -> None: ...


class SummedTask(Protocol):
    """The parts of a task that are summed up."""

    @property
    def dropped(self) -> Dropped: ...

    def behind(self) -> int: ...


class SummedRunning(Protocol):
    """A running task (``Running``)."""

    @property
    def task(self) -> SummedTask: ...


class Restoring(Protocol):
    """The part of the state updater that is summed up."""

    @property
    def restored(self) -> int: ...


class WorkSummary:
    """The counts of one worker since the last line.

    :param interval_ms: between two lines (``log.summary.interval.ms``); none is logged where it is not positive.
    """

    def __init__(self, worker: str, clock: Clock, interval_ms: int) -> None:
        self._worker = worker
        self._clock = clock
        self._interval_s = interval_ms / 1000
        self._since = clock.monotonic()
        self._processed = self._punctuated = self._committed = 0
        self._restored = 0
        self._dropped: dict[Dropped, tuple[int, int]] = {}

    def add(self, *, processed: int = 0, punctuated: int = 0, committed: int = 0) -> None:
        """Counts records that were processed, tasks whose punctuators ran, and tasks that were committed."""
        self._processed += processed
        self._punctuated += punctuated
        self._committed += committed

    def poll(self, running: Mapping[TaskId, SummedRunning], updater: Restoring) -> None:
        """Logs the line if it is due."""
        passed_s = self._clock.monotonic() - self._since
        if self._interval_s <= 0 or passed_s <= self._interval_s:
            return
        dropped, late = self._newly_dropped([one.task.dropped for one in running.values()])
        restored, self._restored = updater.restored - self._restored, updater.restored
        log.info(
            "%s: processed %d records (%.1f/s), ran %d punctuators, and committed %d tasks in the last %.0f s; "
            "%d records behind; dropped %d (%d late); restored %d",
            self._worker,
            self._processed,
            self._processed / passed_s,
            self._punctuated,
            self._committed,
            passed_s,
            sum(one.task.behind() for one in running.values()),
            dropped,
            late,
            restored,
        )
        self._since += passed_s
        self._processed = self._punctuated = self._committed = 0

    def _newly_dropped(self, tasks: list[Dropped]) -> tuple[int, int]:
        before, self._dropped = self._dropped, {one: (one.total, one.late) for one in tasks}
        dropped = late = 0
        for one, (all_of_it, late_of_it) in self._dropped.items():
            known, known_late = before.get(one, (0, 0))
            dropped += all_of_it - known
            late += late_of_it - known_late
            one.sum_up()
        return dropped, late
