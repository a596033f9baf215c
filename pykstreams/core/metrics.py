"""Counters and gauges with Kafka's names and tags; nothing here runs per record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class MetricName(NamedTuple):
    """Name, group and tags of a metric; tags are sorted pairs."""

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Metric:
    """A metric and how to read it."""

    name: MetricName
    read: Callable[[], float]

    @property
    def value(self) -> float:
        return self.read()


@dataclass(slots=True)
class Counter:
    """A total that only grows."""

    total: int = 0

    def add(self, amount: int = 1) -> None:
        self.total += amount


@dataclass(slots=True)
class StreamsMetrics:
    """The registry of one worker."""

    _metrics: dict[MetricName, Metric] = field(default_factory=dict)
    _counters: dict[MetricName, Counter] = field(default_factory=dict)

    def counter(self, name: str, group: str, **tags: str) -> Counter:
        """Returns the counter of that name and tags, made on first use."""
        key = MetricName(name, group, _tags(tags))
        counter = self._counters.get(key)
        if counter is None:
            made = self._counters[key] = Counter()
            self._metrics[key] = Metric(key, lambda: made.total)
            return made
        return counter

    def gauge(self, name: str, group: str, read: Callable[[], float], **tags: str) -> None:
        """Adds a metric that is read when asked for."""
        key = MetricName(name, group, _tags(tags))
        self._metrics[key] = Metric(key, read)

    def remove(self, **tags: str) -> None:
        """Removes every metric that carries all these tags."""
        wanted = set(_tags(tags))
        for key in [key for key in self._metrics if wanted <= set(key.tags)]:
            del self._metrics[key]
            self._counters.pop(key, None)

    def metrics(self) -> dict[MetricName, Metric]:
        """A copy of everything there is."""
        return dict(self._metrics)

    def __iter__(self) -> Iterator[Metric]:
        return iter(self.metrics().values())


def _tags(tags: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name.replace("_", "-"), value) for name, value in tags.items()))
