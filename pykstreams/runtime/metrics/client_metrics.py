"""The metrics of an application as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pykstreams._version import __version__
from pykstreams.core.metrics import RecordingLevel, StreamsMetrics
from pykstreams.core.metrics.built_in import client as built_in

STATES: Final = (
    "CREATED",
    "REBALANCING",
    "RUNNING",
    "PENDING_SHUTDOWN",
    "NOT_RUNNING",
    "PENDING_ERROR",
    "ERROR",
)
"""In the order of ``KafkaStreams.State``, 4.3.1."""


class ClientMetrics:
    """The metrics of one application."""

    def __init__(self, metrics: StreamsMetrics, client_id: str) -> None:
        self._metrics = metrics.with_tags(client_id=client_id)
        self._failed = self._metrics.sensor(built_in.FAILED_THREADS)
        self._failed.record(0)

    def describe(
        self,
        *,
        application_id: str,
        process_id: str,
        state: Callable[[], str],
        topology: Callable[[], str],
        alive: Callable[[], int],
    ) -> None:
        """Adds the gauges of the application."""
        metrics, level = self._metrics, list(RecordingLevel).index(self._metrics.level)
        metrics.add_gauge(built_in.VERSION, lambda: __version__)
        metrics.add_gauge(built_in.APPLICATION_ID, lambda: application_id)
        metrics.add_gauge(built_in.TOPOLOGY, topology)
        metrics.add_gauge(built_in.STATE, state)
        metrics.add_gauge(
            built_in.CLIENT_STATE,
            lambda: STATES.index(state()),
            application_id=application_id,
            process_id=process_id,
        )
        metrics.add_gauge(built_in.ALIVE_THREADS, alive)
        metrics.add_gauge(built_in.RECORDING_LEVEL, lambda: level, process_id=process_id)

    def thread_failed(self) -> None:
        """Counts a worker that has failed."""
        self._failed.record()
