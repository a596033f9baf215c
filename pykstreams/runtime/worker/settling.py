"""Commits wait until nothing of their tasks is in flight any more (``map_values_async`` and its like).

While tasks run on, whoever is late is asked again at the next turn; before tasks leave, and at the end, they are waited
for, but not for ever.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection

from pykstreams.core.clock import Clock
from pykstreams.core.errors import TaskMigratedError
from pykstreams.runtime.worker.commits.commit_schedule import CommitSchedule
from pykstreams.runtime.worker.feed import SOON_S
from pykstreams.runtime.worker.task_manager import Running

log = logging.getLogger(__name__)

LAST_COMMIT_S = 10.0
"""How long a last commit is waited for."""


class Settling:
    """The wait of one worker.

    :param woken: set, from any thread, when something that was in flight has finished.
    :param exactly_once: whether one task that may not be committed holds back the transaction of all.
    """

    def __init__(self, clock: Clock, schedule: CommitSchedule, woken: threading.Event, *, exactly_once: bool) -> None:
        self._clock = clock
        self._schedule = schedule
        self._woken = woken
        self._exactly_once = exactly_once

    def is_over(self, tasks: Collection[Running]) -> bool:
        """Whether nothing is in flight any more, so that the commit that is due can be made."""
        late = [one.task for one in tasks if not one.task.settle()]
        if late and self._schedule.should_complain():
            log.warning(
                "the commit waits for %d records in flight in tasks %s; if a function of map_values_async may hang, "
                "give it a timeout",
                sum(task.unfinished for task in late),
                ", ".join(str(task.id) for task in late),
            )
        return not late

    def wait(self, tasks: Collection[Running]) -> list[Running]:
        """Waits for what these tasks have in flight; returns those that may be committed after all the time there is.

        Under exactly-once that is all of them, or ``TaskMigratedError``.
        """
        deadline = self._clock.monotonic() + LAST_COMMIT_S
        while True:
            self._woken.clear()
            settled = [one for one in tasks if one.task.settle()]
            late = len(tasks) - len(settled)
            if not late:
                return settled
            if self._clock.monotonic() > deadline:
                break
            self._woken.wait(SOON_S)
        text = f"records of {late} tasks were still in flight after {LAST_COMMIT_S:g} s"
        if self._exactly_once:
            raise TaskMigratedError(f"{text}, so nothing was committed")
        log.warning("%s; these tasks are not committed, and their last records are processed again", text)
        return settled
