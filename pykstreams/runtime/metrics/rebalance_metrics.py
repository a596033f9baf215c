"""The metrics of rebalances: how long a worker takes to take up tasks, and to give them up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from pykstreams.core.clock import Clock
from pykstreams.core.metrics import Sensor, StreamsMetrics
from pykstreams.core.metrics.built_in import threads as built_in


class RebalanceMetrics:
    """The metrics of the rebalances of one worker, recorded as they happen; used on its thread.

    They are removed with the others of the worker (``ThreadMetrics.close``).

    :param metrics: those with the tag of the worker.
    """

    def __init__(self, metrics: StreamsMetrics, clock: Clock) -> None:
        self._clock = clock
        self._assigned = metrics.sensor(built_in.TASKS_ASSIGNED)
        self._revoked = metrics.sensor(built_in.TASKS_REVOKED)
        self._lost = metrics.sensor(built_in.TASKS_LOST)

    def assigning(self, *, lost: bool = False) -> AbstractContextManager[None]:
        """Measures how long it takes to take up an assignment, or to give up everything."""
        return self._timed(self._lost if lost else self._assigned)

    def revoking(self) -> AbstractContextManager[None]:
        """Measures how long the last commit of tasks that leave takes."""
        return self._timed(self._revoked)

    @contextmanager
    def _timed(self, sensor: Sensor) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        finally:
            sensor.record((self._clock.monotonic() - began) * 1000)
