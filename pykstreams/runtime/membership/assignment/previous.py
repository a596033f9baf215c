"""The tasks that a client had before, and how far behind it is, from what its consumers report."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING, UNKNOWN_SUM

log = logging.getLogger(__name__)


def previous_tasks(
    offset_sums: Mapping[TaskId, int], owned: Iterable[TaskId]
) -> tuple[frozenset[TaskId], frozenset[TaskId]]:
    """Returns the active and the standby tasks of a client.

    :param offset_sums: what it says of its tasks with state.
    :param owned: the tasks of the partitions that it owns; stateless tasks are known by these only.
    """
    active = frozenset(owned) | {task for task, offset_sum in offset_sums.items() if offset_sum == RUNNING}
    return active, frozenset(offset_sums) - active


def lags(offset_sums: Mapping[TaskId, int], end_sums: Mapping[TaskId, int]) -> dict[TaskId, int]:
    """Returns how many offsets a client is behind in each stateful task (``ClientState.computeTaskLags``, 4.3.1).

    :param end_sums: the sum of the end offsets of each stateful task's changelogs.
    """
    found = {}
    for task, end in end_sums.items():
        reached = offset_sums.get(task, 0)
        if reached in (RUNNING, UNKNOWN_SUM):
            found[task] = reached
        elif reached > end:
            log.warning(
                "task %s has reached offset %d in all where its changelogs end at %d: its state is damaged, or the "
                "changelogs were made anew. Tasks are assigned as if nothing of it were there; the worker that opens "
                "it says what becomes of it",
                task,
                reached,
                end,
            )
            found[task] = end
        else:
            found[task] = end - reached
    return found
