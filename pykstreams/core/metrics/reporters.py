"""The interface of reporters of metrics (``metric.reporters``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pykstreams.core.metrics.sensor import Metric


class MetricsReporter(Protocol):
    """Is told of metrics as they come and go; reads them whenever it wants to, from any thread.

    Its methods are called by the thread that adds or removes a metric, and should return at once. What they raise is
    logged and goes no further. One with ``configure(configs)`` is given the settings before ``init``.
    """

    def init(self, metrics: Sequence[Metric]) -> None:
        """Called once, with the metrics there are."""
        ...

    def metric_change(self, metric: Metric) -> None:
        """Called for each metric that is added, or takes the place of one of the same name."""
        ...

    def metric_removal(self, metric: Metric) -> None:
        """Called for each metric that is removed."""
        ...

    def close(self) -> None:
        """Called at the end."""
        ...
