"""Metrics for OpenTelemetry, by its API (``pip install pykstreams[opentelemetry]``)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from pykstreams._version import __version__
from pykstreams.core.errors import ConfigError
from pykstreams.core.metrics import Metric, MetricName
from pykstreams.metrics.sources import only_grows, value_of

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation


class OpenTelemetryReporter:
    """A reporter that gives each metric to an observable instrument; for ``metric.reporters``.

    ``StreamsConfig({"metric.reporters": [OpenTelemetryReporter()]})``. Instruments are named
    ``kafka.streams.<group>.<name>``, and observed with tags as attributes when the SDK collects; totals are counters,
    the rest gauges. A text is observed as 1, with the text as an attribute.

    :param meter_provider: the one of the process if left out.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        try:
            from opentelemetry.metrics import Observation, get_meter
        except ImportError as error:
            raise ConfigError(
                "OpenTelemetryReporter needs the API of OpenTelemetry; install it by "
                "pip install pykstreams[opentelemetry]"
            ) from error
        self._observation = Observation
        self._meter = get_meter("pykstreams", __version__, meter_provider)
        self._lock = threading.Lock()
        self._metrics: dict[tuple[str, str], dict[MetricName, Metric]] = {}

    def init(self, metrics: Sequence[Metric]) -> None:
        """Follows the metrics there are."""
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric: Metric) -> None:
        """Follows a metric, with an instrument that is made for the first of its name and group."""
        name = metric.name
        kind = name.group, name.name
        with self._lock:
            is_new = kind not in self._metrics
            self._metrics.setdefault(kind, {})[name] = metric
        if is_new:
            totals = only_grows(name.name)
            make = self._meter.create_observable_counter if totals else self._meter.create_observable_gauge
            make(instrument_name(*kind), [self._observer(kind)], description=name.description)

    def metric_removal(self, metric: Metric) -> None:
        """Lets go of a metric; its instrument observes the others of its name."""
        with self._lock:
            self._metrics[metric.name.group, metric.name.name].pop(metric.name, None)

    def close(self) -> None:
        """Lets go of all metrics."""
        with self._lock:
            for found in self._metrics.values():
                found.clear()

    def _observer(self, kind: tuple[str, str]) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(options: CallbackOptions) -> Iterable[Observation]:
            with self._lock:
                found = list(self._metrics[kind].items())
            for name, metric in found:
                attributes = dict(name.tags)
                value = value_of(metric)
                if isinstance(value, str):
                    attributes[name.name] = value
                    value = 1.0
                if value is not None:
                    yield self._observation(value, attributes)

        return observe


def instrument_name(group: str, name: str) -> str:
    """Returns the name of an instrument.

    >>> instrument_name("stream-task-metrics", "process-total"), instrument_name("stream-metrics", "state")
    ('kafka.streams.task.process-total', 'kafka.streams.state')
    """
    middle = group.removesuffix("-metrics").removeprefix("stream").removeprefix("-")
    return ".".join(part for part in ("kafka.streams", middle, name) if part)
