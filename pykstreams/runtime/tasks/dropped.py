"""Counts the records that are dropped on the way, and warns of them without flooding the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import Counter
from pykstreams.processors.drop_reasons import LATE_REASONS

if TYPE_CHECKING:
    from pykstreams.core.record import RecordContext

log = logging.getLogger(__name__)

WARN_INTERVAL_S = 10.0


@dataclass(slots=True)
class NodeDrops:
    """The records that a node, or a store, dropped: all of them, those that were late, and those that failed."""

    total: int = 0
    late: int = 0
    failed: int = 0


class DroppedRecords:
    """The dropped records of one task (metric ``dropped-records-total``).

    For each node and reason the first is logged, and after that at most one in ten seconds, with the number of
    those that were not.
    """

    def __init__(
        self,
        task_id: TaskId,
        counter: Counter,
        clock: Clock,
        position: Callable[[], RecordContext | None],
    ) -> None:
        self._task_id = task_id
        self._counter = counter
        self._clock = clock
        self._position = position
        self.late = 0
        """How many of them were late."""
        self._by_node: dict[str, NodeDrops] = {}
        self._last: dict[tuple[str, str], tuple[float, int]] = {}

    @property
    def total(self) -> int:
        """How many there were."""
        return self._counter.total

    def by_node(self) -> Mapping[str, NodeDrops]:
        """The same, of each node that has dropped any; may be called from any thread."""
        return {node: replace(drops) for node, drops in self._by_node.copy().items()}

    def count(self, node: str, *, late: bool = False, failed: bool = False) -> None:
        """Counts one without a line in the log: it was logged elsewhere, or is part of normal work.

        :param node: the node, or the store that does not put the record.
        """
        self._counter.total += 1
        self.late += late
        drops = self._of(node)
        drops.total += 1
        drops.late += late
        drops.failed += failed

    def drop(self, node: str, reason: str, where: str = "", *, failed: bool = False) -> None:
        """Counts one and warns if it is time to.

        :param reason: the same for all records of one cause: what differs from one to the next is told by ``where``.
        :param where: the record; by default the one that is being processed.
        """
        self.count(node, late=reason in LATE_REASONS, failed=failed)
        now = self._clock.monotonic()
        last, silent = self._last.get((node, reason), (None, 0))
        if last is not None and now - last < WARN_INTERVAL_S:
            self._last[node, reason] = (last, silent + 1)
            return
        self._last[node, reason] = (now, 0)
        if not where:
            context = self._position()
            where = "no input record" if context is None else f"{context.topic}-{context.partition}@{context.offset}"
        more = f" (and {silent} more since the last warning)" if silent else ""
        log.warning("%s dropped a record: %s; task %s, %s%s", node, reason, self._task_id, where, more)

    def _of(self, node: str) -> NodeDrops:
        found = self._by_node.get(node)
        if found is None:
            found = self._by_node[node] = NodeDrops()
        return found

    def sum_up(self) -> None:
        """Logs those that no line has counted yet, one line for each node and reason."""
        for (node, reason), (last, silent) in self._last.items():
            if silent:
                self._last[node, reason] = (last, 0)
                log.warning(
                    "%s dropped %d more records since the last warning: %s; task %s",
                    node,
                    silent,
                    reason,
                    self._task_id,
                )
