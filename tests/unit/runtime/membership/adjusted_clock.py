"""A clock whose wall-clock time somebody corrects."""

from __future__ import annotations

from pykstreams.testing import MockClock


class AdjustedClock(MockClock):
    """A mock clock that can be set back, which its monotonic time does not follow."""

    def __init__(self, start: int = 0) -> None:
        super().__init__(start)
        self._back_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() - self._back_ms

    def set_back(self, by_ms: int) -> None:
        """Sets wall-clock time back."""
        self._back_ms += by_ms
