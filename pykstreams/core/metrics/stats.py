"""The values that a sensor keeps, and the statistics that are read from them (``SampledStat``, ``Rate``, 4.3.1).

All statistics of a sensor read the same few numbers, so that a record costs the same however many there are.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Amounts:
    """Values summed up: how many, their sum, the highest, the lowest and the last. Plain numbers, without a lock."""

    __slots__ = ("count", "high", "last", "low", "total")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets everything."""
        self.count = 0
        self.total = 0.0
        self.high = -math.inf
        self.low = math.inf
        self.last = math.nan

    def add(self, value: float) -> None:
        """Adds one value."""
        self.count += 1
        self.total += value
        if value > self.high:
            self.high = value
        if value < self.low:
            self.low = value
        self.last = value

    def add_all(self, values: Sequence[float]) -> None:
        """Adds several values; faster than one by one."""
        if not values:
            return
        self.count += len(values)
        self.total += sum(values)
        self.high = max(self.high, max(values))
        self.low = min(self.low, min(values))
        self.last = values[-1]

    def add_differences(self, end: float, values: Sequence[float]) -> None:
        """Adds ``end - value`` of several values, without making them one by one."""
        if values:
            self._add_differences(end, values, min(values), max(values))

    def add_ascending_differences(self, end: float, values: Sequence[float]) -> None:
        """Adds ``end - value`` of one or more values that ascend; faster than of any."""
        self._add_differences(end, values, values[0], values[-1])

    def _add_differences(self, end: float, values: Sequence[float], lowest: float, highest: float) -> None:
        self.count += len(values)
        self.total += end * len(values) - sum(values)
        self.high = max(self.high, end - lowest)
        self.low = min(self.low, end - highest)
        self.last = end - values[-1]

    def add_zeros(self, count: int) -> None:
        """Adds a number of zeros."""
        self.count += count
        self.high, self.low, self.last = max(self.high, 0), min(self.low, 0), 0

    def merge(self, other: Amounts) -> None:
        """Adds what another one has summed up."""
        self.count += other.count
        self.total += other.total
        if other.high > self.high:
            self.high = other.high
        if other.low < self.low:
            self.low = other.low
        if other.count:
            self.last = other.last


@dataclass(slots=True)
class _Sample:
    start_ms: int
    last_ms: int
    amounts: Amounts = field(default_factory=Amounts)


class SampleWindow:
    """The last samples of a sensor.

    :param window_ms: how long a sample is (``metrics.sample.window.ms``).
    :param samples: how many of them count (``metrics.num.samples``); one more is kept, which overlaps their beginning.
    """

    __slots__ = ("_count", "_samples", "_window_ms")

    def __init__(self, window_ms: int, samples: int) -> None:
        self._window_ms = max(1, window_ms)
        self._count = samples
        self._samples: deque[_Sample] = deque(maxlen=samples + 1)

    def record(self, amounts: Amounts, now_ms: int) -> None:
        """Adds to the current sample, or begins another, also when the clock was set back."""
        if not self._samples or not 0 <= now_ms - self._samples[-1].start_ms < self._window_ms:
            self._samples.append(_Sample(now_ms, now_ms))
        sample = self._samples[-1]
        sample.amounts.merge(amounts)
        sample.last_ms = now_ms

    def live(self, now_ms: int) -> Iterator[Amounts]:
        """The samples that still count."""
        self._expire(now_ms)
        return (sample.amounts for sample in self._samples)

    def seconds(self, now_ms: int) -> float:
        """How long the samples go back: at least all windows but the one that is being filled."""
        self._expire(now_ms)
        elapsed = now_ms - (self._samples[0].start_ms if self._samples else now_ms)
        missing = self._count - 1 - elapsed // self._window_ms
        if missing > 0:
            elapsed += missing * self._window_ms
        return max(1, elapsed) / 1000

    def _expire(self, now_ms: int) -> None:
        """Drops samples that are too old, or from before the clock was set back: nobody knows how old they are."""
        samples, age = self._samples, self._count * self._window_ms
        while samples and (now_ms - samples[0].last_ms >= age or samples[0].start_ms - now_ms >= self._window_ms):
            samples.popleft()


@dataclass(frozen=True, slots=True)
class Recorded:
    """The values that a sensor has recorded: all of them, and those of the last windows."""

    ever: Amounts
    window: SampleWindow


class Stat(Protocol):
    """A statistic of a sensor."""

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        """Reads it; NaN where there is nothing to tell."""
        ...


@dataclass(frozen=True, slots=True)
class Avg:
    """The mean of the values in the windows; NaN without any."""

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        live = list(recorded.window.live(now_ms))
        count = sum(one.count for one in live)
        return sum(one.total for one in live) / count if count else math.nan


@dataclass(frozen=True, slots=True)
class Max:
    """The highest value in the windows; NaN without any."""

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        return max((one.high for one in recorded.window.live(now_ms) if one.count), default=math.nan)


@dataclass(frozen=True, slots=True)
class Min:
    """The lowest value in the windows; NaN without any."""

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        return min((one.low for one in recorded.window.live(now_ms) if one.count), default=math.nan)


@dataclass(frozen=True, slots=True)
class WindowedSum:
    """The sum of the values in the windows."""

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        return sum((one.total for one in recorded.window.live(now_ms)), 0.0)


@dataclass(frozen=True, slots=True)
class WindowedCount:
    """The number of values in the windows."""

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        return float(sum(one.count for one in recorded.window.live(now_ms)))


@dataclass(frozen=True, slots=True)
class Rate:
    """A windowed statistic per second: the sum of the values, or of another one, such as ``WindowedCount``."""

    of: Stat = field(default_factory=WindowedSum)

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        return self.of.measure(recorded, now_ms) / recorded.window.seconds(now_ms)


@dataclass(frozen=True, slots=True)
class CumulativeSum:
    """The sum of all values."""

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        return recorded.ever.total


@dataclass(frozen=True, slots=True)
class CumulativeCount:
    """The number of all values."""

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        return float(recorded.ever.count)


@dataclass(frozen=True, slots=True)
class Value:
    """The last value; NaN before the first."""

    def measure(self, recorded: Recorded, now_ms: int) -> float:
        return recorded.ever.last
