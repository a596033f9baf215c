"""Tasks in what a member says."""

from __future__ import annotations

import logging
from collections.abc import Collection

from pykstreams.core.ids import TaskId

log = logging.getLogger(__name__)


def task_names(tasks: Collection[TaskId]) -> str:
    """The tasks in their order, for a message; ``none`` without any."""
    return ", ".join(map(str, sorted(tasks))) or "none"


def warn_of_lost(tasks: Collection[TaskId], reason: str) -> None:
    """Logs that the group has given these tasks to others before this worker could commit them."""
    if tasks:
        log.warning(
            "tasks %s were lost without notice: the group has gone on without this worker (%s); they are taken up "
            "again from their last commit",
            task_names(tasks),
            reason,
        )
