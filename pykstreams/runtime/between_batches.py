"""Visitors of workers: what they have to do is done by the workers, between two batches of records.

A second thread that is busy takes turns with a worker at the interpreter, and each turn costs the records some of their
time. What a worker does itself, between two batches, costs no more than it takes (decision 0048).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger(__name__)


class Visitor(Protocol):
    """Somebody who is served by workers while they process records; several workers may call at once."""

    def look(self) -> None:
        """Does what there is to do, and does not wait: a worker has processed a batch, or committed a task."""
        ...

    def rest(self) -> None:
        """Notes that a worker has nothing to process, so that nobody looks before the next batch."""
        ...


class BetweenBatches:
    """The visitors of an application's workers.

    One that raises is logged and removed: records go on.
    """

    __slots__ = ("_lock", "_visitors")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._visitors: tuple[Visitor, ...] = ()

    def add(self, visitor: Visitor) -> None:
        """Has workers call a visitor from now on; any thread may ask."""
        with self._lock:
            self._visitors = (*self._visitors, visitor)

    def remove(self, visitor: Visitor) -> None:
        """Has them call it no more, but for one that is about to; does nothing where they do not."""
        with self._lock:
            self._visitors = tuple(one for one in self._visitors if one is not visitor)

    def look(self) -> None:
        """Has all visitors look; for a worker that is between two batches, or between two tasks of a commit."""
        for visitor in self._visitors:
            self._call(visitor, visitor.look)

    def rest(self) -> None:
        """Tells all visitors that there is nothing to process; for a worker."""
        for visitor in self._visitors:
            self._call(visitor, visitor.rest)

    def _call(self, visitor: Visitor, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:
            log.exception("%r failed between two batches of records, and workers call it no more", visitor)
            self.remove(visitor)
