"""The wall clock: a protocol, and the one module that may read the machine's."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from; tests put their own in."""

    def now_ms(self) -> int:
        """Wall-clock time in ms since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for deadlines and intervals."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits; only for the outermost loops, which nothing can wake."""
        time.sleep(seconds)
