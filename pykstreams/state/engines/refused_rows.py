"""Rows that a store with retention refuses: counted, and warned of once."""

from __future__ import annotations

import logging

from pykstreams.state.interfaces.store import StoreContext

log = logging.getLogger(__name__)


class RefusedRows:
    """The rows of one open store that came too late for it."""

    __slots__ = ("_count", "_name", "_retention_ms", "_task_id", "_warned")

    def __init__(self, name: str, retention_ms: int, context: StoreContext) -> None:
        self._name = name
        self._retention_ms = retention_ms
        self._task_id = context.task_id
        self._count = context.count_late
        self._warned = False

    def refuse(self, time: int, newest: int) -> None:
        """Counts a row with such a time, and warns if it is the first."""
        self._count(self._name)
        if self._warned:
            return
        self._warned = True
        log.warning(
            "store %r of task %s drops rows that are older than its retention of %d ms: the first has the time %d, "
            "when the newest has %d. Give the store a longer retention if such rows matter",
            self._name,
            self._task_id,
            self._retention_ms,
            time,
            newest,
        )
