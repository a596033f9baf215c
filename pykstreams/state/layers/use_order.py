"""Which entry of a cache was used longest ago."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from pykstreams.state.layers.cache_entries import CacheEntry

_tick_of = attrgetter("tick")


class UseOrder:
    """The entries of a cache in the order of their use, by their ticks.

    They are sorted only when one is wanted and the last sorting is used up, which costs less than to keep them in
    order: those that were sorted keep their order, and those used since are younger than all of these.
    """

    __slots__ = ("_eldest", "_lined_up")

    def __init__(self) -> None:
        self._eldest: list[CacheEntry] = []  # as they were used up to the tick ``_lined_up``, the eldest last
        self._lined_up = 0

    def take_eldest(
        self, entries: Callable[[], Iterable[CacheEntry]], next_tick: Callable[[], int]
    ) -> CacheEntry | None:
        """Returns the entry that was used longest ago, ``None`` where there is none."""
        while True:
            while self._eldest:
                entry = self._eldest.pop()
                if entry.tick <= self._lined_up and entry.live:
                    return entry
            self._eldest = sorted(entries(), key=_tick_of, reverse=True)
            if not self._eldest:
                return None
            self._lined_up = next_tick()

    def clear(self) -> None:
        """Forgets the entries."""
        self._eldest.clear()
