"""Calls that workers make for somebody else between two batches of records: short ones, which do not wait.

A second thread that is busy takes turns with a worker at the interpreter, and each turn costs the records some of their
time. What a worker does itself, between two batches, costs no more than it takes (decision 0048).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class BetweenBatches:
    """Calls of others, which each worker makes after each batch of records that it has processed."""

    __slots__ = ("_calls", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: tuple[Callable[[], None], ...] = ()

    def add(self, call: Callable[[], None]) -> None:
        """Has something called from now on, by several workers at once if there are several; any thread may ask."""
        with self._lock:
            self._calls = (*self._calls, call)

    def remove(self, call: Callable[[], None]) -> None:
        """Has it called no more, but where a worker is about to; nothing happens where it is not called."""
        with self._lock:
            self._calls = tuple(one for one in self._calls if one != call)

    def run(self) -> None:
        """Makes all calls; for a worker. One that raises is logged and not made again: records go on."""
        for call in self._calls:
            try:
                call()
            except Exception:
                log.exception("%r failed between two batches of records, and is not called again", call)
                self.remove(call)
