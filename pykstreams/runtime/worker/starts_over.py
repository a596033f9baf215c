"""How long tasks wait that start over from their last commit, before they are taken up again.

Their records were not taken for a reason that passes, such as too few replicas; at once they would be refused again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pykstreams.core.ids import TaskId

LONGEST_S: Final = 10.0


class StartsOver:
    """How often each task has started over since it was committed last.

    :param first_s: the first wait; each further one is twice as long, up to ``LONGEST_S``.
    """

    def __init__(self, first_s: float) -> None:
        self._first_s = first_s
        self._next_s: dict[TaskId, float] = {}

    def wait_s(self, tasks: Collection[TaskId]) -> float:
        """Notes that these tasks start over, and returns for how long all of them wait."""
        longest = min(LONGEST_S, max((self._next_s.get(task_id, self._first_s) for task_id in tasks), default=0.0))
        self._next_s.update(dict.fromkeys(tasks, 2 * longest))
        return longest

    def committed(self, tasks: Collection[TaskId]) -> None:
        """Notes that these tasks were committed."""
        if self._next_s:
            for task_id in tasks:
                self._next_s.pop(task_id, None)
