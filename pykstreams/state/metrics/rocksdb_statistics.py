"""The statistics of a RocksDB, read from the one text that it gives of all of them.

Rates and ratios look at what has come since the oldest reading of the last ``KEPT_S`` seconds; averages and maxima at
all there was since the store was opened.
"""

from __future__ import annotations

import math
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from pykstreams.core.clock import Clock

KEPT_S: Final = 60.0
"""How far back rates and ratios look, in seconds."""

FRESH_S: Final = 1.0
"""For how long a reading is taken again, in seconds."""

_COUNT: Final = re.compile(r"^rocksdb\.(\S+) COUNT : (\d+)$", re.MULTILINE)
_HISTOGRAM: Final = re.compile(r"^rocksdb\.(\S+) .*P100 : (\S+) COUNT : (\d+) SUM : (\d+)$", re.MULTILINE)

_RATES: Final = {
    "bytes-written-rate": "bytes.written",
    "bytes-read-rate": "bytes.read",
    "memtable-bytes-flushed-rate": "flush.write.bytes",
    "bytes-read-compaction-rate": "compact.read.bytes",
    "bytes-written-compaction-rate": "compact.write.bytes",
}
_TOTALS: Final = {
    "bytes-written-total": ("bytes.written", 1),
    "bytes-read-total": ("bytes.read", 1),
    "memtable-bytes-flushed-total": ("flush.write.bytes", 1),
    "write-stall-duration-total": ("stall.micros", 1000),
    "number-file-errors-total": ("no.file.errors", 1),
}
"""The counter, and what it is divided by."""

_RATIOS: Final = {
    "memtable-hit-ratio": "memtable",
    "block-cache-data-hit-ratio": "block.cache.data",
    "block-cache-index-hit-ratio": "block.cache.index",
    "block-cache-filter-hit-ratio": "block.cache.filter",
}
_AVERAGES: Final = {
    "memtable-flush-time-avg": "db.flush.micros",
    "compaction-time-avg": "compaction.times.micros",
    "write-stall-duration-avg": "db.write.stall",
}
_MAXIMA: Final = {"memtable-flush-time-max": "db.flush.micros", "compaction-time-max": "compaction.times.micros"}


class RocksDbStatistics:
    """Reads the metrics of one store; any thread may ask.

    :param read: gives the text, or ``None`` when the store is closed.
    """

    def __init__(self, read: Callable[[], str | None], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._readings: deque[tuple[float, Mapping[str, float]]] = deque()

    def value(self, name: str) -> float:
        """The value of a metric; NaN while there is nothing to tell."""
        with self._lock:
            self._refresh()
            if not self._readings:
                return math.nan
            (before_s, before), (now_s, now) = self._readings[0], self._readings[-1]
        if counter := _RATES.get(name):
            return _divided(now[counter] - before[counter], now_s - before_s)
        if total := _TOTALS.get(name):
            return now[total[0]] / total[1]
        if cache := _RATIOS.get(name):
            hits, misses = (now[one] - before.get(one, 0) for one in (f"{cache}.hit", f"{cache}.miss"))
            return _divided(hits, hits + misses)
        if histogram := _AVERAGES.get(name):
            return _divided(now[f"{histogram} sum"], now[f"{histogram} count"]) / 1000
        histogram = _MAXIMA[name]
        return now[f"{histogram} most"] / 1000 if now[f"{histogram} count"] else math.nan

    def _refresh(self) -> None:
        now = self._clock.monotonic()
        if self._readings and now - self._readings[-1][0] < FRESH_S:
            return
        text = self._read()
        if text is None:
            return
        numbers = _numbers(text)
        if self._readings and numbers["bytes.written"] < self._readings[-1][1]["bytes.written"]:
            self._readings.clear()  # the store was opened anew, and counts from the beginning
        self._readings.append((now, numbers))
        while len(self._readings) > 2 and now - self._readings[1][0] >= KEPT_S:
            self._readings.popleft()


def _numbers(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {name: int(count) for name, count in _COUNT.findall(text)}
    for name, most, count, total in _HISTOGRAM.findall(text):
        found[f"{name} most"], found[f"{name} count"], found[f"{name} sum"] = float(most), int(count), int(total)
    return found


def _divided(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan
