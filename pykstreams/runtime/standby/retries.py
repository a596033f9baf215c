"""Troubles of standby tasks: warned of once, and tried again later."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TaskId

log = logging.getLogger(__name__)

RETRY_S: Final = 30.0


class Retries:
    """The troubles of the standby tasks of one process, and of what is committed for them (``None``)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._retry_at: dict[TaskId, float] = {}
        self._warned: dict[TaskId | None, str] = {}

    def warn(self, about: TaskId | None, text: str) -> None:
        """Warns, unless the last warning about the same said the same."""
        if self._warned.get(about) != text:
            self._warned[about] = text
            log.warning("%s", text)

    def is_over(self, about: TaskId | None) -> None:
        """Notes that there is nothing wrong any more, so that the next time is warned of again."""
        self._warned.pop(about, None)

    def later(self, tasks: Iterable[TaskId]) -> None:
        """Puts off tasks by ``RETRY_S``."""
        self._retry_at.update(dict.fromkeys(tasks, self._clock.monotonic() + RETRY_S))

    def is_due(self, task_id: TaskId) -> bool:
        """Whether a task may be tried."""
        return self._clock.monotonic() >= self._retry_at.get(task_id, 0)
