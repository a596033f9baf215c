"""The iterators over a store that are open, at ``DEBUG``."""

from __future__ import annotations

from collections.abc import Mapping

from pykstreams.core.clock import Clock
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.metrics.built_in import stores as built_in
from pykstreams.state.interfaces.store import KeyValueIterator


class OpenIterators:
    """Counts them, and measures how long they were open; any thread may open and close one."""

    def __init__(self, metrics: StreamsMetrics, tags: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._open: dict[int, tuple[int, float]] = {}
        self._durations = metrics.sensor(built_in.ITERATORS, **tags)
        metrics.add_gauge(built_in.OPEN_ITERATORS, lambda: len(self._open), **tags)
        metrics.add_gauge(built_in.OLDEST_ITERATOR, self._oldest, **tags)

    def watch(self, iterator: KeyValueIterator[object, object]) -> None:
        """Follows one until it is closed."""
        number = id(iterator)
        self._open[number] = self._clock.now_ms(), self._clock.monotonic()
        iterator.on_close = lambda: self._closed(number)

    def _closed(self, number: int) -> None:
        opened = self._open.pop(number, None)
        if opened is not None:
            self._durations.record((self._clock.monotonic() - opened[1]) * 1e9)

    def _oldest(self) -> int:
        return min((opened for opened, _ in self._open.copy().values()), default=0)
