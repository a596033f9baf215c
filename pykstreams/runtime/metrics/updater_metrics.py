"""The metrics of restoring, by batch of changelog records."""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.metrics.built_in import updater as built_in


class UpdaterMetrics:
    """The metrics of one state updater, or of the thread that keeps standby tasks.

    :param metrics: those with the tag of the thread.
    """

    def __init__(self, metrics: StreamsMetrics) -> None:
        self._metrics = metrics
        self._calls = metrics.sensor(built_in.RESTORE_CALLS)
        self._records = metrics.sensor(built_in.RESTORE_RECORDS)
        self._idle = metrics.sensor(built_in.IDLE_RATIO)
        self._restoring = metrics.sensor(built_in.RESTORE_RATIO)
        self._standby = metrics.sensor(built_in.STANDBY_RATIO)

    def describe(self, *, restoring: Callable[[], int], standby: Callable[[], int], paused: Callable[[], bool]) -> None:
        """Adds the numbers of tasks."""
        metrics = self._metrics
        metrics.add_gauge(built_in.ACTIVE_RESTORING, lambda: 0 if paused() else restoring())
        metrics.add_gauge(built_in.ACTIVE_PAUSED, lambda: restoring() if paused() else 0)
        metrics.add_gauge(built_in.STANDBY_UPDATING, lambda: 0 if paused() else standby())
        metrics.add_gauge(built_in.STANDBY_PAUSED, lambda: standby() if paused() else 0)

    def restored(self, seconds: float) -> None:
        """Notes one fetch of changelogs, with the time until its records were in the stores."""
        self._calls.record()
        self._restoring.record(seconds)

    def records(self, count: int) -> None:
        """Counts records that were restored."""
        self._records.record(count)

    def followed(self, seconds: float) -> None:
        """Notes time spent with standby tasks."""
        self._standby.record(seconds)

    def idled(self, seconds: float) -> None:
        """Notes time with nothing to do."""
        self._idle.record(seconds)

    def close(self) -> None:
        """Removes every metric with the tag of this thread."""
        self._metrics.remove()
