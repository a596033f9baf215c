"""Sensors, which record values, and the metrics that are read from them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykstreams.core.clock import Clock
from pykstreams.core.metrics.levels import RecordingLevel
from pykstreams.core.metrics.names import MetricName
from pykstreams.core.metrics.stats import Amounts, Recorded, SampleWindow, Stat

if TYPE_CHECKING:
    from typing import Protocol

    class MetricHome(Protocol):
        """Where metrics of a sensor are listed."""

        def list_metric(self, metric: Metric) -> None: ...

        def now_ms(self) -> int: ...


@dataclass(slots=True)
class Metric:
    """A metric and how to read it."""

    name: MetricName
    read: Callable[[], float | str]

    def metric_value(self) -> float | str:
        """The number, or the text of a metric that has one, such as ``version``."""
        return self.read()

    @property
    def value(self) -> float:
        """The number; NaN for a metric that is a text, or has nothing to tell yet."""
        found = self.read()
        return math.nan if isinstance(found, str) else found

    @property
    def text(self) -> str | None:
        """The text of a metric that is one."""
        found = self.read()
        return found if isinstance(found, str) else None


class Sensor:
    """Records values, from which its metrics are read. Any thread may record, and any may read.

    Made by ``StreamsMetrics.add_sensor`` and its siblings.

    :param records: whether it is recorded at the level of the application; otherwise ``record`` does nothing.
    """

    __slots__ = (
        "_clock",
        "_home",
        "_lock",
        "_names",
        "_parents",
        "_recorded",
        "name",
        "recording_level",
        "records",
    )

    def __init__(
        self,
        name: str,
        recording_level: RecordingLevel,
        *,
        records: bool,
        window: SampleWindow,
        clock: Clock,
        home: MetricHome,
        parents: Sequence[Sensor] = (),
    ) -> None:
        self.name = name
        self.recording_level = recording_level
        self.records = records
        self._recorded = Recorded(Amounts(), window)
        self._clock = clock
        self._home = home
        self._parents = tuple(parents)
        self._names: dict[MetricName, None] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Sensor {self.name!r} at {self.recording_level.name}>"

    @property
    def metric_names(self) -> tuple[MetricName, ...]:
        """The names of its metrics."""
        return tuple(self._names)

    def add(self, name: MetricName, stat: Stat) -> bool:
        """Adds a metric that reads a statistic of this sensor; false if it is there already."""
        if name in self._names:
            return False
        self._names[name] = None
        self._home.list_metric(Metric(name, lambda: self._measure(stat)))
        return True

    def forget(self, names: Iterable[MetricName]) -> bool:
        """Lets go of metrics that were removed, which may be added again; true if it had some, and has none left."""
        had_some = bool(self._names)
        for name in names:
            self._names.pop(name, None)
        return had_some and not self._names

    def record(self, value: float = 1.0, timestamp: int | None = None) -> None:
        """Records a value, also in the parents of this sensor.

        :param timestamp: when it was, in ms; now if left out.
        """
        if self.records:
            amounts = Amounts()
            amounts.add(value)
            self._record(amounts, self._clock.now_ms() if timestamp is None else timestamp)

    def take(self, amounts: Amounts, timestamp: int) -> None:
        """Records values that were summed up elsewhere, and clears them there."""
        if amounts.count:
            if self.records:
                self._record(amounts, timestamp)
            amounts.clear()

    def _record(self, amounts: Amounts, timestamp: int) -> None:
        with self._lock:
            self._recorded.ever.merge(amounts)
            self._recorded.window.record(amounts, timestamp)
        for parent in self._parents:
            if parent.records:
                parent._record(amounts, timestamp)

    def _measure(self, stat: Stat) -> float:
        with self._lock:
            return stat.measure(self._recorded, self._clock.now_ms())
