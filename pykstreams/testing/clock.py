"""A clock that stands still until it is moved."""

from __future__ import annotations

from pykstreams.core.types import Duration, Timestamp, duration_ms, timestamp_ms


class MockClock:
    """A ``Clock`` for tests; wall-clock time and the monotonic clock move together.

    >>> clock = MockClock(1000)
    >>> clock.advance(500)
    >>> clock.now_ms()
    1500
    """

    def __init__(self, start: Timestamp = 0) -> None:
        self._start_ms = timestamp_ms(start, "start of the clock")
        self._now_ms = self._start_ms

    def __repr__(self) -> str:
        return f"<MockClock at {self._now_ms} ms>"

    def now_ms(self) -> int:
        """Wall-clock time in ms since the epoch."""
        return self._now_ms

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return (self._now_ms - self._start_ms) / 1000

    def advance(self, duration: Duration) -> None:
        """Moves forward; ``ValueError`` for a negative duration."""
        self._now_ms += duration_ms(duration, "advance of the clock")
