"""The metrics of the rebalances of one worker: how long it takes to take tasks up and to give them up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pykstreams.core.clock import Clock
from pykstreams.core.metrics import Sensor, StreamsMetrics
from pykstreams.core.metrics.built_in import threads as built_in


class RebalanceMetrics:
    """Measures what a worker does in a rebalance, on its thread.

    :param metrics: those with the tag of the worker.
    """

    def __init__(self, metrics: StreamsMetrics, clock: Clock) -> None:
        self._clock = clock
        self._assigned = metrics.sensor(built_in.TASKS_ASSIGNED)
        self._revoked = metrics.sensor(built_in.TASKS_REVOKED)
        self._lost = metrics.sensor(built_in.TASKS_LOST)

    @contextmanager
    def assigning(self, *, lost: bool = False) -> Iterator[None]:
        """Measures how long it takes to take up an assignment, or to give up everything."""
        with self._timed(self._lost if lost else self._assigned):
            yield

    @contextmanager
    def revoking(self) -> Iterator[None]:
        """Measures how long the last commit of tasks that leave takes."""
        with self._timed(self._revoked):
            yield

    @contextmanager
    def _timed(self, sensor: Sensor) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        finally:
            sensor.record((self._clock.monotonic() - began) * 1000)
