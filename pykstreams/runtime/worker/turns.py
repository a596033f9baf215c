"""Processes the tasks of a worker in turn."""

from __future__ import annotations

from collections.abc import Iterable

from pykstreams.core.clock import Clock
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.worker.standing import GroupStanding
from pykstreams.runtime.worker.task_manager import Running

BATCH = 1000
"""Records that a task processes at most before the others get their turn."""

LOOK_EVERY = 200
"""Records after which the clock is looked at: a worker that was stopped meanwhile may have lost its tasks."""

_TOO_SLOW_S = 0.5
_QUICK_S = 0.1


class Turns:
    """The turns of tasks; slow records make them shorter, so that polls stay frequent.

    :param between: who looks in after each batch, at most ``LOOK_EVERY`` records, of a task.
    """

    def __init__(self, clock: Clock, standing: GroupStanding, between: BetweenBatches) -> None:
        self._clock = clock
        self._standing = standing
        self._between = between
        self._batch = BATCH

    def process(self, tasks: Iterable[Running]) -> int:
        """Processes records of each task, and returns how many; stops when the worker may no longer be in the group."""
        processed = 0
        for one in tasks:
            began = self._clock.monotonic()
            whole = left = self._batch
            while left > 0 and self._standing.is_member():
                wanted = min(left, LOOK_EVERY)
                taken = one.task.process(wanted)
                processed += taken
                left -= taken
                if taken:
                    self._between.look()
                if taken < wanted:
                    break
            if left == whole:
                one.idle_since_ms = self._clock.now_ms() if one.idle_since_ms is None else one.idle_since_ms
            else:
                one.idle_since_ms = None
            took = self._clock.monotonic() - began
            if took > _TOO_SLOW_S:
                self._batch = max(1, self._batch // 2)
            elif took < _QUICK_S and self._batch < BATCH:
                self._batch = min(BATCH, self._batch * 2)
        if not processed:
            self._between.rest()
        return processed
