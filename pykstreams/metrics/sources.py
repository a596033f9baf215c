"""Where exporters read metrics from."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from pykstreams.core.metrics import Metric, MetricName

log = logging.getLogger(__name__)

_broken: set[MetricName] = set()
"""The metrics of which was said that they cannot be read."""

_PREFIX: Final = "kafka_streams"
_OF_STREAMS: Final = "stream-"
_END: Final = "-metrics"
_NO_TOTALS: Final = frozenset(("restore-remaining-records-total", "cache-size-bytes-total"))
_OTHER_TOTALS: Final = frozenset(("failed-stream-threads",))


class HasMetrics(Protocol):
    """A ``KafkaStreams``, a ``TopologyTestDriver``, a ``StreamsMetrics``: whatever has ``metrics()``."""

    def metrics(self) -> Mapping[MetricName, Metric]:
        """All metrics by name."""
        ...


class Sample(NamedTuple):
    """One metric as exporters take it.

    :param name: the name with underscores, behind ``kafka_streams`` and its group: ``kafka_streams_task_process_rate``.
    :param labels: its tags with underscores; a text becomes one more, named like the metric, and the value 1.
    :param is_total: whether it only grows.
    """

    name: str
    description: str
    labels: Mapping[str, str]
    value: float
    is_total: bool


def samples(source: HasMetrics) -> Iterator[Sample]:
    """Yields all metrics that have a value (``value_of``)."""
    for name, metric in source.metrics().items():
        value = value_of(metric)
        if value is None:
            continue
        labels, scope = _labels(name.tags)
        if scope is not None:
            labels["store_scope"] = scope
        if isinstance(value, str):
            labels[_underscored(name.name)] = value
            value = 1.0
        yield Sample(exported_name(name.group, name.name), name.description, labels, value, only_grows(name.name))


def value_of(metric: Metric) -> float | str | None:
    """The value of a metric; ``None`` for one that has nothing to tell yet (NaN), raises, or gives no number."""
    try:
        value = metric.metric_value()
        if isinstance(value, str):
            return value
        return None if math.isnan(value) else float(value)
    except Exception:  # gauges are the user's, too
        name = metric.name
        if name not in _broken:
            _broken.add(name)
            log.exception("metric %s of %s cannot be read, and is left out; it is said once", name.name, name.group)
        return None


def only_grows(name: str) -> bool:
    """Whether the value of a metric never falls.

    >>> only_grows("process-total"), only_grows("restore-remaining-records-total")
    (True, False)
    """
    return name in _OTHER_TOTALS or (name.endswith("-total") and name not in _NO_TOTALS)


def exported_name(group: str, name: str) -> str:
    """Returns the name of a metric in exporters.

    >>> exported_name("stream-task-metrics", "process-total"), exported_name("stream-metrics", "state")
    ('kafka_streams_task_process_total', 'kafka_streams_state')
    >>> exported_name("consumer-fetch-manager-metrics", "records-lag")
    'kafka_streams_consumer_fetch_manager_records_lag'
    """
    group = group.removesuffix(_END)
    middle = "" if group == "stream" else f"{_underscored(group.removeprefix(_OF_STREAMS))}_"
    return f"{_PREFIX}_{middle}{_underscored(name)}"


def _labels(tags: tuple[tuple[str, str], ...]) -> tuple[dict[str, str], str | None]:
    """Tags as labels, in a form that Prometheus takes whatever a user has given: a name that it refuses would cost the
    whole page. That of a store has one name for stores of all kinds, whose kind is returned.
    """
    labels: dict[str, str] = {}
    scope: str | None = None
    for tag, value in tags:
        if tag.endswith("-state-id"):
            labels["state_id"], scope = str(value), tag.removesuffix("-state-id")
        else:
            name = _underscored(tag)
            labels[f"_{name}" if name[:1].isdigit() else name] = str(value)
    return labels, scope


def _underscored(text: str) -> str:
    return "".join(one if one.isascii() and (one.isalnum() or one == "_") else "_" for one in text)
