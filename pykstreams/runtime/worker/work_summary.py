"""A log line now and then that sums up what a worker has done (``StreamThread``, 4.3.1)."""

from __future__ import annotations

import logging

from pykstreams.core.clock import Clock

log = logging.getLogger(__name__)


class WorkSummary:
    """The counts of one worker since the last line.

    :param interval_ms: between two lines (``log.summary.interval.ms``); none is logged where it is not positive.
    """

    def __init__(self, worker: str, clock: Clock, interval_ms: int) -> None:
        self._worker = worker
        self._clock = clock
        self._interval_s = interval_ms / 1000
        self._since = clock.monotonic()
        self._processed = self._punctuated = self._committed = 0

    def add(self, *, processed: int = 0, punctuated: int = 0, committed: int = 0) -> None:
        """Counts records that were processed, tasks whose punctuators ran, and tasks that were committed."""
        self._processed += processed
        self._punctuated += punctuated
        self._committed += committed

    def poll(self) -> None:
        """Logs the line if it is due."""
        passed_s = self._clock.monotonic() - self._since
        if self._interval_s <= 0 or passed_s <= self._interval_s:
            return
        log.info(
            "%s: processed %d records, ran %d punctuators, and committed %d tasks in the last %.0f s",
            self._worker,
            self._processed,
            self._punctuated,
            self._committed,
            passed_s,
        )
        self._since += passed_s
        self._processed = self._punctuated = self._committed = 0
