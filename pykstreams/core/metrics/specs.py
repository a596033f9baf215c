"""Built-in metrics described: one value a sensor, or a gauge, from which the sensors are made and the pages written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from pykstreams.core.metrics.levels import RecordingLevel
from pykstreams.core.metrics.stats import Avg, CumulativeCount, CumulativeSum, Max, Min, Rate, Stat, WindowedCount


class MetricSpec(NamedTuple):
    """One metric of a sensor."""

    name: str
    stat: Stat
    description: str


@dataclass(frozen=True, slots=True)
class SensorSpec:
    """A sensor with its metrics.

    :param tags: the names of its tags.
    """

    group: str
    tags: tuple[str, ...]
    level: RecordingLevel
    metrics: tuple[MetricSpec, ...]


@dataclass(frozen=True, slots=True)
class GaugeSpec:
    """A metric that is read when asked for."""

    group: str
    tags: tuple[str, ...]
    name: str
    description: str
    level: RecordingLevel = RecordingLevel.INFO


Spec: TypeAlias = SensorSpec | GaugeSpec


def each_metric(specs: Iterable[Spec]) -> Iterator[tuple[str, str, tuple[str, ...], RecordingLevel, str, bool]]:
    """Yields (group, name, tags, level, description, whether it is a gauge) of each metric."""
    for spec in specs:
        if isinstance(spec, GaugeSpec):
            yield spec.group, spec.name, spec.tags, spec.level, spec.description, True
        else:
            for metric in spec.metrics:
                yield spec.group, metric.name, spec.tags, spec.level, metric.description, False


def latencies(operation: str, subject: str, unit: str = "ms") -> tuple[MetricSpec, ...]:
    """Average and maximum of how long something takes."""
    return (
        MetricSpec(f"{operation}-latency-avg", Avg(), f"The average time that {subject} took, in {unit}"),
        MetricSpec(f"{operation}-latency-max", Max(), f"The longest time that {subject} took, in {unit}"),
    )


def calls(operation: str, subject: str) -> tuple[MetricSpec, ...]:
    """Rate and number of values recorded."""
    return (
        MetricSpec(f"{operation}-rate", Rate(WindowedCount()), f"The number of {subject} per second"),
        MetricSpec(f"{operation}-total", CumulativeCount(), f"The number of {subject}"),
    )


def amounts(operation: str, subject: str) -> tuple[MetricSpec, ...]:
    """Rate and sum of the values recorded."""
    return (
        MetricSpec(f"{operation}-rate", Rate(), f"The number of {subject} per second"),
        MetricSpec(f"{operation}-total", CumulativeSum(), f"The number of {subject}"),
    )


def rate_of_calls(operation: str, subject: str) -> tuple[MetricSpec, ...]:
    """Rate of values recorded, alone."""
    return calls(operation, subject)[:1]


def average_and_maximum(name: str, subject: str) -> tuple[MetricSpec, ...]:
    """Average and maximum of what is no time."""
    return (
        MetricSpec(f"{name}-avg", Avg(), f"The average {subject}"),
        MetricSpec(f"{name}-max", Max(), f"The highest {subject}"),
    )


def lowest(name: str, subject: str) -> tuple[MetricSpec, ...]:
    """The minimum of what is no time."""
    return (MetricSpec(f"{name}-min", Min(), f"The lowest {subject}"),)
