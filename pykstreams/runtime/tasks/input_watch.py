"""Reports to operators since when a task has had no input; where none of them wants to know, nothing is noted."""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.clock import Clock


class InputWatch:
    """When the last input came, by the wall clock.

    :param waits: tells whether records are there, or may be, that were not processed yet.
    """

    __slots__ = ("_clock", "_last_ms", "_waits", "wanted")

    def __init__(self, clock: Clock, waits: Callable[[], bool]) -> None:
        self._clock = clock
        self._waits = waits
        self._last_ms = 0
        self.wanted = False
        """Whether ``note`` is to be called."""

    def begin(self) -> Callable[[], int | None]:
        """Watches from now on; returns the function that gives the time in ms, ``None`` while records wait."""
        if not self.wanted:
            self.wanted = True
            self.note()
        return self._since

    def note(self) -> None:
        """Notes that records were processed."""
        self._last_ms = self._clock.now_ms()

    def _since(self) -> int | None:
        if self._waits():
            self.note()  # the time until they are processed is not idle either
            return None
        return self._last_ms
